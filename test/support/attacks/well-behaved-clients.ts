/** Clients of other keys beside an attack: each makes one small call after another, with a pause between them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Agent, request } from 'undici'
import type { IssuedKey } from '../records.ts'

const PAUSE_MS = 200
const BODY = JSON.stringify({ model: 'good', max_tokens: 5, messages: [{ role: 'user', content: 'Say something.' }] })

export interface Calls {
  /** ms of each call. */
  readonly times: readonly number[]
  /** Number of calls that failed otherwise than by row 25. */
  readonly failed: number
  /** Number of calls that the gateway refused because of load (row 25). */
  readonly shed: number
}

/** Lets all clients call for some time. @param api base URL of the gateway @param agent keeps their connections from one time to the next */
export async function callAll(api: string, clients: readonly IssuedKey[], forMs: number, agent: Agent): Promise<Calls> {
  const end = performance.now() + forMs
  const times: number[] = []
  const counts = { failed: 0, shed: 0 }
  const client = async ({ credential }: IssuedKey, index: number): Promise<void> => {
    await sleep((PAUSE_MS * index) / clients.length)
    while (performance.now() < end) {
      const started = performance.now()
      const outcome = await call(api, credential, agent)
      times.push(performance.now() - started)
      if (outcome !== 'answered') counts[outcome] += 1
      await sleep(PAUSE_MS)
    }
  }
  await Promise.all(clients.map(client))
  return { times, ...counts }
}

async function call(api: string, credential: string, dispatcher: Agent): Promise<'answered' | 'failed' | 'shed'> {
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
  try {
    const answer = await request(`${api}/v1/chat/completions`, { method: 'POST', headers, body: BODY, dispatcher })
    const text = await answer.body.text()
    if (answer.statusCode === 200) return 'answered'
    return answer.statusCode === 503 && text.includes('overloaded') ? 'shed' : 'failed'
  } catch {
    return 'failed'
  }
}
