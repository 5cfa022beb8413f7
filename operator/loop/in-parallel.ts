import { breathe } from '#platform/clock.ts'

/** Runs `work` on every item, at most `limit` at once. @returns results in order; rejects with the first error after all had their turn */
export async function inParallel<T, R>(items: readonly T[], limit: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const errors: unknown[] = []
  const queue = items.entries() // shared: each worker takes the next item
  async function worker(): Promise<void> {
    for (const [index, item] of queue) {
      try {
        results[index] = await work(item)
      } catch (error) {
        errors.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  if (errors.length > 0) throw errors[0]
  return results
}

/** Calls `visit` for each item, and lets other work run after every `perTurn` items. */
export async function inTurns<T>(items: Iterable<T>, perTurn: number, visit: (item: T) => void): Promise<void> {
  let count = 0
  for (const item of items) {
    if (count > 0 && count % perTurn === 0) await breathe()
    visit(item)
    count += 1
  }
}
