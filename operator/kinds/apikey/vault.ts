/**
 * Holds Credentials between minting and the write of the user's Secret, only in memory and for a short time. A crash loses them, and the
 * operator then voids their verifiers, whose values no client has seen.
 */
import type { Clock } from '#platform/clock.ts'
import type { Credential } from '#contract/values/credential.ts'

/** Longest time until delivery, ms. The vault then drops the Credential, and the key gets a new one. */
const KEEP_MS = 600_000

export class CredentialVault {
  readonly #clock: Clock
  /** `untilMs` on the monotonic clock: a step of the wall clock must not void a key that is about to be delivered. */
  readonly #held = new Map<string, { readonly credential: Credential; readonly untilMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @param verifierId public id of the Credential */
  hold(verifierId: string, credential: Credential): void {
    const now = this.#clock.monotonic()
    for (const [id, entry] of this.#held) if (entry.untilMs <= now) this.#held.delete(id)
    this.#held.set(verifierId, { credential, untilMs: now + KEEP_MS })
  }

  get(verifierId: string): Credential | undefined {
    const entry = this.#held.get(verifierId)
    return entry && entry.untilMs > this.#clock.monotonic() ? entry.credential : undefined
  }

  drop(verifierId: string): void {
    this.#held.delete(verifierId)
  }
}
