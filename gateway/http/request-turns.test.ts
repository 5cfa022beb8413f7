import { describe, expect, test } from 'vitest'
import { RequestTurns, TurnTaker } from './request-turns.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Begins `count` requests and notes each by name when it has begun. */
function begin(turns: RequestTurns, key: TurnTaker, { name, count, begun }: { name: string; count: number; begun: string[] }): void {
  for (let i = 0; i < count; i++) {
    const turn = turns.take(key)
    if (turn) void turn.then(() => begun.push(`${name}${i}`))
    else begun.push(`${name}${i}`)
  }
}

/** Turns on a loop whose turns take `turnMs` each, after it has had so many of them. */
async function turnsAfter(count: number, turnMs: number): Promise<RequestTurns> {
  let now = 0
  const turns = new RequestTurns(() => (now += turnMs))
  for (let i = 0; i < count; i++) {
    void turns.take(new TurnTaker())
    await nextTurn()
  }
  return turns
}

describe('turns of requests', () => {
  test('while the loop is fast, 64 requests of one key begin at once, and the others in the next turns, in their order', async () => {
    const [turns, begun] = [await turnsAfter(10, 1), [] as string[]]
    begin(turns, new TurnTaker(), { name: '', count: 130, begun })
    expect(begun).toHaveLength(64)
    await nextTurn()
    expect(begun).toHaveLength(128)
    await nextTurn()
    expect(begun).toEqual(Array.from({ length: 130 }, (_, i) => String(i)))
  })

  test('while the loop is slow, one of each key begins in a turn', async () => {
    const [turns, begun] = [await turnsAfter(10, 50), [] as string[]]
    begin(turns, new TurnTaker(), { name: '', count: 10, begun })
    expect(begun).toHaveLength(1)
    await nextTurn()
    expect(begun).toHaveLength(2)
  })

  test('a request of another key begins at once, however many of the first one wait', async () => {
    const [turns, begun] = [await turnsAfter(10, 50), [] as string[]]
    const modest = new TurnTaker()
    begin(turns, new TurnTaker(), { name: 'greedy', count: 1_000, begun })
    expect(turns.take(modest)).toBeUndefined()
    await nextTurn()
    expect(turns.take(modest)).toBeUndefined()
    expect(begun).toHaveLength(2)
  })

  test('a request that comes while others of its key wait does not overtake them', async () => {
    const [turns, begun] = [await turnsAfter(10, 50), [] as string[]]
    const key = new TurnTaker()
    begin(turns, key, { name: 'a', count: 3, begun })
    await nextTurn()
    begin(turns, key, { name: 'b', count: 1, begun })
    for (let turn = 0; turn < 2; turn++) await nextTurn()
    expect(begun).toEqual(['a0', 'a1', 'a2', 'b0'])
  })
})
