/**
 * Credentials between minting and the user's Secret: in memory only, and not for long. A crash loses them, which is what voids a
 * verifier that nobody has seen.
 */
import type { Credential } from '../../gateway/shared/credential.ts'

/** A Credential that could not be delivered for this long is dropped; the key then gets a new one. */
const KEEP_MS = 600_000

/** Holds each freshly minted Credential until its Secret is written. */
export class CredentialVault {
  readonly #held = new Map<string, { readonly credential: Credential; readonly untilMs: number }>()

  /** @param verifierId public id of the Credential */
  hold(verifierId: string, credential: Credential, nowMs: number): void {
    for (const [id, entry] of this.#held) if (entry.untilMs <= nowMs) this.#held.delete(id)
    this.#held.set(verifierId, { credential, untilMs: nowMs + KEEP_MS })
  }

  get(verifierId: string, nowMs: number): Credential | undefined {
    const entry = this.#held.get(verifierId)
    return entry && entry.untilMs > nowMs ? entry.credential : undefined
  }

  drop(verifierId: string): void {
    this.#held.delete(verifierId)
  }
}
