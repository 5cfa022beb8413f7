/** Carries out the same work on many items, `width` at a time, in their order. Rejects with the first failure. */
export async function inFlight<T>(width: number, items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const rest = items.values() // shared: each worker takes the next item
  const worker = async (): Promise<void> => {
    for (const item of rest) await work(item)
  }
  await Promise.all(Array.from({ length: width }, worker))
}
