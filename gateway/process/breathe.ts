/** Lets other work have its turn in the midst of a long loop. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
