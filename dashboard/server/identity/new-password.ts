/** Which passwords may be chosen. NIST SP 800-63B: length counts, and a list of common ones is refused; no rules for kinds of characters. */
import type { PasswordError } from '../pages/controls.ts'
import { COMMON_PASSWORDS } from './common-passwords.ts'

export const MIN_PASSWORD = 12
export const MAX_PASSWORD = 128

/** @returns why `password` cannot be chosen; undefined if it can */
export function passwordProblem(password: string, email: string): PasswordError | undefined {
  const length = Array.from(password).length
  if (length < MIN_PASSWORD) return 'too-short'
  if (length > MAX_PASSWORD) return 'too-long'
  const plain = password.normalize('NFKC').toLowerCase()
  const [local = ''] = email.toLowerCase().split('@')
  if (plain === email.toLowerCase() || (local.length >= 4 && plain.replaceAll(local, '').length < 4)) return 'too-common'
  return isCommon(plain) ? 'too-common' : undefined
}

/** Whether the text is a common password, one with digits and signs around it, or one short piece repeated. */
function isCommon(plain: string): boolean {
  const core = plain.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '')
  return COMMON_PASSWORDS.has(plain) || COMMON_PASSWORDS.has(core) || core === '' || /^(.{1,4})\1+$/u.test(plain)
}
