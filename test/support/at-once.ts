/** Many calls, some at a time, as a GitOps tool or a script of a tenant makes them. */

/** Runs `job` for each item, at most `width` at once. Rejects with the first failure, after all running calls have ended. */
export async function atOnce<T, R>(items: readonly T[], job: (item: T, index: number) => Promise<R>, width = 16): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++
      results[index] = await job(items[index] as T, index) // below the length, so present
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: width }, worker))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) throw failed.reason
  return results
}

/** `prefix-0` … `prefix-<count - 1>`. */
export function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
}
