/** Argon2id hashes of passwords in the PHC string format, by Node's own implementation. Parameters: OWASP Password Storage Cheat Sheet. */
import { argon2, randomBytes, timingSafeEqual, type Argon2Parameters } from 'node:crypto'
import { promisify } from 'node:util'

/** What a hash costs its computer in memory and time. */
export interface HashCost {
  readonly memoryKiB: number
  readonly passes: number
}

const COST: HashCost = { memoryKiB: 19_456, passes: 2 }
const PARALLELISM = 1
const SALT_BYTES = 16
const TAG_BYTES = 32
const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/

const derive = promisify<'argon2id', Argon2Parameters, Buffer>(argon2)

/** @returns `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>` */
export async function hashPassword(password: string, { memoryKiB, passes }: HashCost = COST): Promise<string> {
  const nonce = randomBytes(SALT_BYTES)
  const tag = await derive('argon2id', {
    message: messageOf(password),
    nonce,
    memory: memoryKiB,
    passes,
    parallelism: PARALLELISM,
    tagLength: TAG_BYTES,
  })
  return `$argon2id$v=19$m=${memoryKiB},t=${passes},p=${PARALLELISM}$${base64(nonce)}$${base64(tag)}`
}

/** @returns whether `password` has the hash; false for a text that is not a hash */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  const [, memory, passes, parallelism, salt = '', tag = ''] = PHC.exec(hash) ?? []
  if (memory === undefined) return false
  const expected = Buffer.from(tag, 'base64')
  const actual = await derive('argon2id', {
    message: messageOf(password),
    nonce: Buffer.from(salt, 'base64'),
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    tagLength: expected.length,
  })
  return timingSafeEqual(actual, expected)
}

/** The bytes of a password: one form for all ways in which keyboards compose a character. */
function messageOf(password: string): Buffer {
  return Buffer.from(password.normalize('NFKC'), 'utf8')
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}
