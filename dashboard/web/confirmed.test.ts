import { expect, it } from 'vitest'
import { Refused } from './api.ts'
import { Cancelled, confirmed } from './confirmed.ts'

const refused = (code: 'confirm' | 'conflict'): Refused => new Refused({ code, message: 'No.', requestID: 'r1' })

/** A change that the server refuses with each of these in turn, and then makes. */
function change(...refusals: readonly Refused[]): { run: () => Promise<string>; attempts: () => number } {
  let attempts = 0
  const run = async (): Promise<string> => {
    const refusal = refusals[attempts]
    attempts += 1
    if (refusal) throw refusal
    return 'changed'
  }
  return { run, attempts: () => attempts }
}

const never = (): Promise<boolean> => Promise.reject(new Error('asked'))

it('a change that needs no proof is made without a question', async () => {
  expect(await confirmed(change().run, never)).toBe('changed')
})

it('a change that needs a proof goes on by itself after the proof', async () => {
  const { run, attempts } = change(refused('confirm'))
  expect([await confirmed(run, async () => true), attempts()]).toEqual(['changed', 2])
})

it('a change without the proof is not asked for a second time', async () => {
  const { run, attempts } = change(refused('confirm'))
  await expect(confirmed(run, async () => false)).rejects.toThrow(Cancelled)
  expect(attempts()).toBe(1)
})

it('a change that is refused for another reason asks for no proof', async () => {
  await expect(confirmed(change(refused('conflict')).run, never)).rejects.toMatchObject({ code: 'conflict' })
})

it('a proof that did not last is an error, and no endless questions', async () => {
  await expect(confirmed(change(refused('confirm'), refused('confirm')).run, async () => true)).rejects.toMatchObject({ code: 'confirm' })
})
