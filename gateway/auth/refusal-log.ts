/**
 * Logs which ApiKey a refused request belongs to. The answer says only that the key is suspended, expired, revoked or deleted, and its user often
 * does not know the ApiKey. Requests with unknown values leave no line: anyone can send any number of those.
 */
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { GatewayError } from '../errors.ts'

/** Shortest time between two lines about one key, ms. */
const SAME_KEY_MS = 60_000
/** Maximum number of lines per second, over all keys. */
const LINES_PER_SECOND = 10
/** Maximum number of remembered keys; then all are forgotten. */
const MAX_KEYS = 10_000

/** The key that a value belongs to, or belonged to. */
export interface RefusedKey {
  readonly uid: string
  readonly namespace: string
  readonly name: string
}

const NEVER = { atMs: -Infinity, requests: 0 }

export class RefusalLog {
  readonly #log: Pick<Log, 'info'>
  readonly #clock: Pick<Clock, 'monotonic'>
  /** When each key was logged, monotonic ms, and the number of its refusals since then. */
  readonly #keys = new Map<string, { readonly atMs: number; readonly requests: number }>()
  #second = 0
  #lines = 0

  constructor(log: Pick<Log, 'info'>, clock: Pick<Clock, 'monotonic'>) {
    this.#log = log
    this.#clock = clock
  }

  /** @param why a refusal of row 3 or 4; others are not the state of the key */
  refused({ uid, namespace, name }: RefusedKey, keyID: string, { row, params }: GatewayError): void {
    if (row.id !== 'inactiveKey' && row.id !== 'unknownKey') return
    const nowMs = this.#clock.monotonic()
    const { atMs, requests } = this.#keys.get(uid) ?? NEVER
    if (nowMs - atMs < SAME_KEY_MS || !this.#mayWrite(nowMs)) {
      if (atMs >= 0) this.#keys.set(uid, { atMs, requests: requests + 1 })
      return
    }
    if (this.#keys.size >= MAX_KEYS) this.#keys.clear()
    this.#keys.set(uid, { atMs: nowMs, requests: 0 })
    const { state = 'deleted', reason } = params
    this.#log.info({ apiKey: `${namespace}/${name}`, keyID, state, reason, requests: requests + 1 }, 'a key that does not work was refused')
  }

  #mayWrite(nowMs: number): boolean {
    const second = Math.floor(nowMs / 1_000)
    if (second !== this.#second) [this.#second, this.#lines] = [second, 0]
    this.#lines += 1
    return this.#lines <= LINES_PER_SECOND
  }
}
