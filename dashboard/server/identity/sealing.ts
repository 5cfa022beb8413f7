/** Encrypts what waits in the database, and signs what waits in a browser, by keys derived from the secret of the installation. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** One key for one purpose. */
export class Sealing {
  readonly #key: Buffer

  constructor(secret: string, purpose: string) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', `headgate ${purpose}`, KEY_BYTES))
  }

  /** AES-256-GCM under a random nonce, base64url. */
  seal(text: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url')
  }

  /** @returns undefined for what this key has not sealed */
  open(sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
    } catch {
      return undefined
    }
  }

  sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url')
  }

  /** In constant time. */
  isSignature(text: string, signature: string): boolean {
    const [actual, expected] = [Buffer.from(signature), Buffer.from(this.sign(text))]
    return actual.length === expected.length && timingSafeEqual(actual, expected)
  }
}
