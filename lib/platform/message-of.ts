/** @returns the message of a thrown value */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
