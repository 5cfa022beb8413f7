/** Random values that a stand-in provider has handed out, with what they stand for. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '#platform/clock.ts'

/** Maximum number of values of one kind. The oldest ends first, so that a client in a loop cannot fill the memory. */
const CAPACITY = 1000
const RANDOM_BYTES = 24

interface Entry<T> {
  readonly meaning: T
  readonly endsAtMs: number
}

/** Codes, or access tokens. Each ends after a fixed time. */
export class Issued<T> {
  readonly #entries = new Map<string, Entry<T>>() // in the order of issue
  readonly #lifetimeMs: number
  readonly #clock: Pick<Clock, 'now'>

  constructor(lifetimeMs: number, clock: Pick<Clock, 'now'>) {
    this.#lifetimeMs = lifetimeMs
    this.#clock = clock
  }

  issue(meaning: T): string {
    const [oldest] = this.#entries.keys()
    if (this.#entries.size >= CAPACITY && oldest !== undefined) this.#entries.delete(oldest)
    const value = randomBytes(RANDOM_BYTES).toString('base64url')
    this.#entries.set(value, { meaning, endsAtMs: this.#clock.now() + this.#lifetimeMs })
    return value
  }

  /** @returns undefined for a value that was never issued, has ended, or was taken */
  read(value: string): T | undefined {
    const entry = this.#entries.get(value)
    return entry !== undefined && this.#clock.now() < entry.endsAtMs ? entry.meaning : undefined
  }

  /** Reads a value that works once. */
  take(value: string): T | undefined {
    const meaning = this.read(value)
    this.#entries.delete(value)
    return meaning
  }
}
