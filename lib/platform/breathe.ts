/** Yields to other work in the middle of a long loop. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
