/** Codes as people type and paste them, and as the library compares them. */

/** Characters before the dash of a backup code, and after. */
const HALF = 5

/** Without the spaces and dashes that group a code. */
export function plainCode(typed: string): string {
  return typed.replaceAll(/[\s-]/g, '')
}

/** `a1b2c-d3e4f`, as the library made and stored the code. */
export function backupCodeOf(typed: string): string {
  const plain = plainCode(typed)
  return `${plain.slice(0, HALF)}-${plain.slice(HALF)}`
}
