/**
 * Backend credentials, as last read. The operator reads Secrets one by one and never watches them: a watch would need the right to read all
 * Secrets. The loss of this memory costs reads. Within this process only this memory and the Secrets that gateways mount have the values.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '#platform/clock.ts'
import { credentialKey, type CredentialRead, type CredentialRef } from './backend-credential.ts'
import type { ObservedCredential } from './observed.ts'

/** Time between two reads of a credential, ms, spread by a tenth. */
const READ_EVERY_MS = 600_000
/** Time between two reads of a credential that is missing or unreadable, ms. */
const RETRY_EVERY_MS = 10_000
const SPREAD = 0.1
/** Gateways may use the former credential for this time, ms: a changed Secret takes about a minute to reach their files. */
const FORMER_FOR_MS = 600_000

interface Remembered {
  /** The last good read; undefined while there has been none. */
  readonly found: Extract<CredentialRead, { state: 'Found' }> | undefined
  /** Why the credential is unusable, or why the last read failed. */
  readonly problem: Exclude<CredentialRead, { state: 'Found' }> | undefined
  readonly former: { readonly sum: string; readonly value: string; readonly untilMs: number } | undefined
  readonly dueAtMs: number
}

export class CredentialMemory {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #known = new Map<string, Remembered>()

  /** @param deps random: [0, 1) */
  constructor(deps: { readonly clock: Clock; readonly random: () => number }) {
    this.#clock = deps.clock
    this.#random = deps.random
  }

  observe(ref: CredentialRef): ObservedCredential {
    const known = this.#known.get(credentialKey(ref))
    if (known === undefined) return { state: 'Unread' }
    const { found, problem } = known
    if (problem?.state === 'NotFound' || found === undefined) return problem ?? { state: 'Unread' }
    return {
      state: 'Found',
      sum: found.sum,
      origins: found.origins,
      ...(known.former === undefined || this.#isOver(known.former) ? {} : { former: known.former.sum }),
      ...(problem === undefined ? {} : { unreadable: problem.problem }),
    }
  }

  /** ms until the next read; 0 if the read is due. */
  readInMs(ref: CredentialRef): number {
    const known = this.#known.get(credentialKey(ref))
    return known === undefined ? 0 : Math.max(0, known.dueAtMs - this.#now())
  }

  /** ms until gateways may no longer use the former credential; undefined without a former credential. */
  formerEndsInMs(ref: CredentialRef): number | undefined {
    const former = this.#known.get(credentialKey(ref))?.former
    return former === undefined || this.#isOver(former) ? undefined : former.untilMs - this.#now()
  }

  valueOf(ref: CredentialRef): string | undefined {
    const known = this.#known.get(credentialKey(ref))
    return known?.problem?.state === 'NotFound' ? undefined : known?.found?.value
  }

  /** The newest or the former value, by its sum. */
  valueWith(sum: string, ref: CredentialRef): string | undefined {
    const known = this.#known.get(credentialKey(ref))
    return [known?.found, known?.former].find((value) => value?.sum === sum)?.value
  }

  /** @returns whether the result of `observe` has changed */
  store(ref: CredentialRef, read: CredentialRead): boolean {
    const key = credentialKey(ref)
    const before = this.#known.get(key)
    const seen = this.observe(ref)
    this.#known.set(key, { ...this.#merge(before, read), dueAtMs: this.#dueAtMs(read) })
    return !isDeepStrictEqual(seen, this.observe(ref))
  }

  /** Makes the next read due at once, because a model that uses the credential was edited. */
  expire(ref: CredentialRef): void {
    const known = this.#known.get(credentialKey(ref))
    if (known) this.#known.set(credentialKey(ref), { ...known, dueAtMs: -Infinity })
  }

  forget(ref: CredentialRef): void {
    this.#known.delete(credentialKey(ref))
  }

  #merge(before: Remembered | undefined, read: CredentialRead): Omit<Remembered, 'dueAtMs'> {
    const former = before?.former
    if (read.state === 'Unreadable') return { found: before?.found, problem: read, former }
    if (read.state === 'NotFound') return { found: undefined, problem: read, former: undefined }
    const isRotated = before?.found !== undefined && before.found.sum !== read.sum
    const replaced = isRotated ? { sum: before.found.sum, value: before.found.value, untilMs: this.#now() + FORMER_FOR_MS } : former
    return { found: read, problem: undefined, former: replaced }
  }

  #dueAtMs({ state }: CredentialRead): number {
    const everyMs = state === 'Found' ? READ_EVERY_MS : RETRY_EVERY_MS
    return this.#now() + everyMs * (1 - SPREAD + this.#random() * 2 * SPREAD)
  }

  #isOver({ untilMs }: { readonly untilMs: number }): boolean {
    return untilMs <= this.#now()
  }

  #now(): number {
    return this.#clock.monotonic()
  }
}
