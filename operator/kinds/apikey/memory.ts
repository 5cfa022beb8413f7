/** State of ApiKeys that this process cannot derive. The loss of this memory costs a read or a wait, never a key. */
import { BackOff } from '#platform/back-off.ts'
import { messageOf } from '#platform/message-of.ts'
import type { Clock } from '#platform/clock.ts'
import type { Credential } from '#contract/values/credential.ts'
import { isKubeError } from '#kube/port.ts'
import type { Failure, FailureTopic } from './observed.ts'
import type { ObservedSecret } from './user-secret.ts'

/** Time for which a read stays valid, ms. A status waits up to 100 s during a storm of 5,000 new keys. */
const READ_FOR_MS = 180_000
/** The same for a name that another object has, ms. */
const FOREIGN_FOR_MS = 60_000
/** The same for a Secret of a deleted ApiKey, ms: garbage collection takes about this time. */
const LEFT_OVER_FOR_MS = 500
/** Time for which a successful trial write stays valid, ms. */
const TRIAL_FOR_MS = 10_000
/** Bound of revisions of one key by edits that do not stop a value: this many at once, then one per second. */
const REVISION_BURST = 5
const REVISION_EVERY_MS = 1_000
/** Longest time until the delivery of a Credential, ms. The vault then drops it, and the key gets a new one. */
const HOLD_FOR_MS = 600_000
const COMMIT_BACK_OFF = { firstMs: 1_000, maxMs: 300_000 } as const

interface Memory {
  read?: { readonly secret: ObservedSecret; readonly generation: number; readonly untilMs: number }
  trialUntilMs?: number
  liveVersion?: string | undefined
  deletionSinceMs?: number
  isReleased?: true
  revisions?: { readonly left: number; readonly atMs: number }
  readonly failures: Map<FailureTopic, Omit<Failure, 'topic' | 'retryInMs'>>
  commitBackOff?: BackOff
}

export class KeyMemory {
  readonly #clock: Clock
  readonly #keys = new Map<string, Memory>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @param generation of the manifest: another generation needs another read */
  secret(uid: string, generation: number): ObservedSecret {
    const read = this.#keys.get(uid)?.read
    if (read === undefined || read.generation !== generation || read.untilMs <= this.#now()) return { state: 'Unknown' }
    return read.secret
  }

  rememberSecret(uid: string, generation: number, secret: ObservedSecret): void {
    const forMs = secret.state === 'Foreign' ? FOREIGN_FOR_MS : secret.state === 'LeftOver' ? LEFT_OVER_FOR_MS : READ_FOR_MS
    this.#of(uid).read = { secret, generation, untilMs: this.#now() + forMs }
  }

  /** Forgets the read, so that the next step that needs the Secret reads it again. */
  forgetSecret(uid: string): void {
    delete this.#keys.get(uid)?.read
  }

  isSecretWritable(uid: string): boolean {
    return (this.#keys.get(uid)?.trialUntilMs ?? 0) > this.#now()
  }

  trialSucceeded(uid: string): void {
    this.#of(uid).trialUntilMs = this.#now() + TRIAL_FOR_MS
  }

  confirmedLive(uid: string, version: string | undefined): void {
    this.#of(uid).liveVersion = version
  }

  isConfirmedLive(uid: string, version: string | undefined): boolean {
    const live = this.#keys.get(uid)?.liveVersion
    return live !== undefined && live === version
  }

  /** @returns ms since this process first saw the deletion; 0 at the first call */
  deletingForMs(uid: string): number {
    const memory = this.#of(uid)
    memory.deletionSinceMs ??= this.#now()
    return this.#now() - memory.deletionSinceMs
  }

  /** Records that the operator's finalizer is removed, although the cache may still show the finalizer. */
  released(uid: string): void {
    this.#of(uid).isReleased = true
  }

  isReleased(uid: string): boolean {
    return this.#keys.get(uid)?.isReleased === true
  }

  revisionInMs(uid: string): number {
    const revisions = this.#keys.get(uid)?.revisions
    if (revisions === undefined || this.#revisionsLeft(revisions) >= 1) return 0
    return Math.ceil(REVISION_EVERY_MS * (1 - this.#revisionsLeft(revisions)))
  }

  revised(uid: string): void {
    const memory = this.#of(uid)
    const left = memory.revisions === undefined ? REVISION_BURST : this.#revisionsLeft(memory.revisions)
    memory.revisions = { left: Math.max(0, left - 1), atMs: this.#now() }
  }

  failures(uid: string): readonly Failure[] {
    const memory = this.#keys.get(uid)
    if (memory === undefined || memory.failures.size === 0) return []
    const retryInMs = memory.commitBackOff?.waitMs(this.#now()) ?? 0
    return [...memory.failures].map(([topic, failure]) => ({ ...failure, topic, retryInMs: topic === 'Keyring' ? retryInMs : 0 }))
  }

  failed(uid: string, topic: FailureTopic, error: unknown): void {
    const code = isKubeError(error) ? error.code : 'Other'
    const message = messageOf(error)
    const memory = this.#of(uid)
    memory.failures.set(topic, { code, message })
    if (topic === 'SecretWrite') delete memory.trialUntilMs // the result of the trial is outdated
  }

  /** Records that the keyring refused an entry. @returns ms until the next try */
  commitFailed(uid: string, code: Failure['code'], message: string): number {
    const memory = this.#of(uid)
    memory.commitBackOff ??= new BackOff(COMMIT_BACK_OFF)
    memory.failures.set('Keyring', { code, message })
    return memory.commitBackOff.next({ nowMs: this.#now() })
  }

  /** Ends the pause after a refused entry: an edit that restricts waits for nothing. */
  triesAtOnce(uid: string): void {
    delete this.#keys.get(uid)?.commitBackOff
  }

  succeeded(uid: string, topic: FailureTopic): void {
    const memory = this.#keys.get(uid)
    memory?.failures.delete(topic)
    if (topic === 'Keyring') delete memory?.commitBackOff
  }

  /** Called when no work is left; forgets reads and failures. @returns whether a failure was still remembered */
  settled(uid: string): boolean {
    const memory = this.#keys.get(uid)
    if (memory === undefined) return false
    const hadFailures = memory.failures.size > 0
    memory.failures.clear()
    delete memory.read
    delete memory.commitBackOff
    if (memory.revisions === undefined || this.#revisionsLeft(memory.revisions) >= REVISION_BURST) this.#keys.delete(uid)
    return hadFailures
  }

  forget(uid: string): void {
    this.#keys.delete(uid)
  }

  #revisionsLeft({ left, atMs }: NonNullable<Memory['revisions']>): number {
    return Math.min(REVISION_BURST, left + (this.#now() - atMs) / REVISION_EVERY_MS)
  }

  #of(uid: string): Memory {
    const known = this.#keys.get(uid)
    if (known) return known
    const made: Memory = { failures: new Map() }
    this.#keys.set(uid, made)
    return made
  }

  #now(): number {
    return this.#clock.monotonic()
  }
}

/**
 * Holds Credentials between minting and the write of the user's Secret, only in memory and for a short time. A crash loses them, and the
 * operator then voids their verifiers, whose values no client has seen.
 */
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
    this.#held.set(verifierId, { credential, untilMs: now + HOLD_FOR_MS })
  }

  get(verifierId: string): Credential | undefined {
    const entry = this.#held.get(verifierId)
    return entry && entry.untilMs > this.#clock.monotonic() ? entry.credential : undefined
  }

  drop(verifierId: string): void {
    this.#held.delete(verifierId)
  }
}
