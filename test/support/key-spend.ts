/** What the gateway says that a key has spent of its only budget, which is in money. */
import { callHeaders } from './ask.ts'
import type { Lab } from './lab.ts'

/** @returns micro-units; NaN while a call still holds a part */
export async function spentMicros(lab: Pick<Lab, 'record'>, url: string, credential: string): Promise<number> {
  const answer = await fetch(`${url}/v1/key`, { headers: callHeaders(credential) })
  const { budgets } = JSON.parse(lab.record(await answer.text())) as {
    budgets: readonly { readonly used: string; readonly held: string }[]
  }
  return budgets[0]?.held === '0.00' ? Math.round(1_000_000 * Number(budgets[0].used)) : Number.NaN
}
