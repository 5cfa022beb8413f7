/** Repeats a refused request once the person has proved who they are. Pure over its arguments. */
import { Refused } from './api.ts'

/** The person closed the dialog that asked for a proof: nothing was changed, and nothing needs to be said. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled'
}

/**
 * @param ask asks for a proof. @returns whether the server has accepted one
 * @throws Cancelled when the person gave no proof
 */
export async function confirmed<T>(run: () => Promise<T>, ask: () => Promise<boolean>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Refused) || error.code !== 'confirm') throw error
  }
  if (!(await ask())) throw new Cancelled()
  return run()
}
