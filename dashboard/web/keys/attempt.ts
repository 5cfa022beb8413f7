/** A random text, drawn once for each dialog: a request that is sent again with it makes no second key. Pages without TLS have no `randomUUID`. */
const BYTES = 16

export function newAttempt(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(BYTES)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
