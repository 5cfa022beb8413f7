/** Turns of the event loop that other work gets while `work` is under way. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = (): void => {
    if (isOver) return
    turns += 1
    setImmediate(count)
  }
  setImmediate(count)
  await work()
  isOver = true
  return turns
}
