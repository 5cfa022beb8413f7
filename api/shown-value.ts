/** Decides how a message shows a value of a manifest. A value that may be a credential is never shown. */

const LONGEST = 64
/** Keys of model servers, bearer tokens, and runs of 40 characters that tokens consist of. */
const CREDENTIAL_LIKE = /\bsk-|\bBearer\b|[A-Za-z0-9_+/=-]{40,}/i
/** Fields that hold credentials, or in which users write credentials by mistake. */
const NEVER_SHOWN = new Set<PropertyKey>(['authSecretRef', 'annotations', 'data', 'hash', 'stringData'])

/** @returns the value as text; undefined if it must not be shown or is not a scalar */
export function shownValue(value: unknown, path: readonly PropertyKey[]): string | undefined {
  if (path.some((step) => NEVER_SHOWN.has(step))) return undefined
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? shownText(value) : undefined
}

/** @returns the text in quotes; undefined if it looks like a credential or holds one */
export function shownText(text: string): string | undefined {
  const plain = text.includes('://') ? text.replace(/[?#].*$/s, '') : text // a query may hold a token
  if (CREDENTIAL_LIKE.test(plain) || (text.includes('://') && text.includes('@'))) return undefined
  const clipped = Array.from(plain).slice(0, LONGEST).join('')
  return JSON.stringify(clipped.length < text.length ? `${clipped}…` : clipped)
}

/** The type of a value in the words of YAML, with its article. */
export function typeOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'text'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'boolean' ? 'true or false' : 'a number'
}
