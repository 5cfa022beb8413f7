/** Codes of an authenticator app (RFC 6238): HMAC-SHA-1, 30 seconds. */
import { createHmac } from 'node:crypto'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const STEP_MS = 30_000

/** @param secret in Base32 (RFC 4648), as in an `otpauth:` link; spaces, lower case and padding are allowed */
export function totpCode(secret: string, atMs: number, digits = 6): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(atMs / STEP_MS)))
  const hash = createHmac('sha1', base32(secret)).update(counter).digest()
  const offset = hash.readUInt8(hash.length - 1) & 0xf
  const number = hash.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** @throws for a character outside of the alphabet */
function base32(text: string): Buffer {
  const characters = text.replaceAll(/[\s=]/g, '').toUpperCase().split('')
  const bits = characters.map((character) => {
    const value = ALPHABET.indexOf(character)
    if (value < 0) throw new Error(`${character} is not a Base32 character`)
    return value.toString(2).padStart(5, '0')
  })
  const bytes = bits.join('').match(/.{8}/g) ?? []
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)))
}
