/**
 * The only code that knows the form of a Credential: format, check sum, minting and hash.
 *
 * Own form: `sk-hg1` + 10-character id + 43-character secret + 6-character check sum, all base62 (65 characters).
 * Imported form (keys that another program made, or a person chose): `sk-` + up to 253 printable ASCII characters without spaces.
 */
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/** The secret string that a client sends. Never log, store or echo it. */
export type Credential = string & { readonly __brand: 'Credential' }

/** SHA-256 of the whole Credential, base64url without padding (43 characters). */
export type KeyHash = string & { readonly __brand: 'KeyHash' }

/** Shows that the author of an ApiKey knew its value; see `proofOf`. Base64url without padding (43 characters). */
export type KeyProof = string & { readonly __brand: 'KeyProof' }

/** The kind of a string sent as a credential, by its form alone. */
export type CredentialForm = { readonly form: 'own'; readonly id: string } | { readonly form: 'imported' } | { readonly form: 'malformed' }

const TAG = 'sk-hg1'
const ID_LENGTH = 10
const SECRET_LENGTH = 43 // 62^43 > 2^256
const CHECK_LENGTH = 6 // 62^6 > 2^32
const BODY_LENGTH = TAG.length + ID_LENGTH + SECRET_LENGTH
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const OWN = /^sk-hg1[0-9A-Za-z]{59}$/
/** Longest Credential of any form, characters. A longer one is not even hashed. */
export const MAX_CREDENTIAL_LENGTH = 256
const IMPORTED = /^sk-[!-~]{1,253}$/
const MALFORMED: CredentialForm = { form: 'malformed' }
const IMPORTED_FORM: CredentialForm = { form: 'imported' }

/** KeyHash and KeyProof as text in records: 43 base64url characters. */
export const KEY_HASH_PATTERN = /^[0-9A-Za-z_-]{43}$/

/**
 * Makes a new Credential and its public id.
 * @param random source of random bytes; tests pass a fixed one
 */
export function mintCredential(random: (size: number) => Uint8Array = randomBytes): { credential: Credential; id: string } {
  const id = randomBase62(ID_LENGTH, random)
  const body = TAG + id + randomBase62(SECRET_LENGTH, random)
  return { credential: (body + checkSum(body)) as Credential, id }
}

/** Checks the form of a sent value without any look-up. The check sum of an own Credential catches a typo and a missing part. */
export function credentialForm(value: string): CredentialForm {
  if (value.startsWith(TAG)) return ownForm(value)
  return IMPORTED.test(value) ? IMPORTED_FORM : MALFORMED
}

function ownForm(value: string): CredentialForm {
  if (!OWN.test(value) || value.slice(BODY_LENGTH) !== checkSum(value.slice(0, BODY_LENGTH))) return MALFORMED
  return { form: 'own', id: value.slice(TAG.length, TAG.length + ID_LENGTH) }
}

/** SHA-256 of the whole value. 256 random bits need neither salt nor a slow hash. */
export function hashCredential(value: string): KeyHash {
  return hash('sha256', value, 'base64url') as KeyHash
}

/**
 * The proof of a value for one ApiKey: its SHA-256 together with the namespace and name of the ApiKey. A hash alone proves nothing, because
 * everybody who reads the manifest knows it; the proof in another manifest does not match.
 */
export function proofOf(value: string, { namespace, name }: { readonly namespace: string; readonly name: string }): KeyProof {
  return hash('sha256', `headgate-proof-1\n${namespace}\n${name}\n${value}`, 'base64url') as KeyProof
}

/** The same hash from its usual text: 64 hexadecimal digits, with or without `sha256:` before them. */
export function keyHashFromHex(hex: string): KeyHash {
  return fromHex(hex) as KeyHash
}

/** The same for a proof. */
export function keyProofFromHex(hex: string): KeyProof {
  return fromHex(hex) as KeyProof
}

function fromHex(hex: string): string {
  return Buffer.from(hex.replace(/^sha256:/, ''), 'hex').toString('base64url')
}

/** A hash or a proof as 64 hexadecimal digits, as manifests have it. */
export function hexOf(value: KeyHash | KeyProof): string {
  return Buffer.from(value, 'base64url').toString('hex')
}

/** A public id that is independent of the value: for a key whose value another program made. */
export function randomKeyID(random: (size: number) => Uint8Array = randomBytes): string {
  return randomBase62(ID_LENGTH, random)
}

/**
 * The part that status and dashboards may show: the first 8 and the last 4 characters. Below 32 characters only the first 8, and at most
 * two fifths of a short value, which a person chose.
 */
export function credentialPrefix(value: string): string {
  if (value.length >= 32) return `${value.slice(0, 8)}…${value.slice(-4)}`
  return `${value.slice(0, Math.min(8, Math.floor(value.length / 2.5)))}…`
}

function checkSum(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < CHECK_LENGTH; i++) {
    text = ALPHABET.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return text
}

function randomBase62(length: number, random: (size: number) => Uint8Array): string {
  let text = ''
  while (text.length < length) {
    for (const byte of random(length)) {
      if (byte < 248 && text.length < length) text += ALPHABET.charAt(byte % 62) // 248 = 4 × 62: without it the first characters would be likelier
    }
  }
  return text
}
