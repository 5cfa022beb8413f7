/** The time left as a clock shows it: `1:05`, rounded up. @returns undefined once the time is over */
export function countdown(leftMs: number): string | undefined {
  if (!(leftMs > 0)) return undefined
  const seconds = Math.ceil(leftMs / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
