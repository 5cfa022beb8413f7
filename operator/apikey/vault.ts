/**
 * Credentials between minting and the user's Secret: in memory only, and not for long. A crash loses them, which is what voids a
 * verifier that nobody has seen.
 */
import type { Clock } from '../../gateway/process/clock.ts'
import type { Credential } from '../../gateway/shared/credential.ts'

/** A Credential that could not be delivered for this long is dropped; the key then gets a new one. */
const KEEP_MS = 600_000

/** Holds each freshly minted Credential until its Secret is written. */
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
