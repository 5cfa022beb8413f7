/** What a form says before the server is asked. The server decides; these checks only save the way. Pure. */

/** What the server accepts as the length of a password, in characters. */
export const PASSWORD_LENGTH = { min: 12, max: 128 }

export function emailError(email: string): string | undefined {
  return /^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(email.trim()) ? undefined : 'Write the whole address, like name@company.example.'
}

export function newPasswordError(password: string): string | undefined {
  const { min, max } = PASSWORD_LENGTH
  const { length } = password.normalize('NFKC')
  if (length < min) return `Use at least ${min} characters.`
  return length > max ? `Use at most ${max} characters.` : undefined
}

/** @param of `current password` */
export function missing(of: string): (value: string) => string | undefined {
  return (value) => (value === '' ? `Type your ${of}.` : undefined)
}

/** A code as a person types or pastes it, without the spaces and dashes that group it. */
export function plainCode(code: string): string {
  return code.replaceAll(/[\s-]/g, '')
}

export function appCodeError(code: string): string | undefined {
  return /^\d{6}$/.test(plainCode(code)) ? undefined : 'Type the six digits that the app shows now.'
}

/** Whether both are the same address: capital letters and spaces around do not count. */
export function isSameEmail(one: string, other: string): boolean {
  return one.trim().toLowerCase() === other.trim().toLowerCase()
}
