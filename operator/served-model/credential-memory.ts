/**
 * Backend credentials as last read. Secrets are read one by one and never watched: a watch would need the right to read all of them. Losing
 * this memory costs reads; the values are nowhere else in this process but in the Secrets that gateways mount.
 */
import type { Clock } from '../../gateway/process/clock.ts'
import { credentialKey, type CredentialRead, type CredentialRef } from './backend-credential.ts'
import type { ObservedCredential } from './observed.ts'

/** A credential is read again this often, ms, spread by a tenth. */
const READ_EVERY_MS = 600_000
/** The same while it is missing or cannot be read. */
const RETRY_EVERY_MS = 10_000
const SPREAD = 0.1
/** Gateways may use the former credential for this long, ms: a changed Secret takes about a minute to reach their files. */
export const FORMER_FOR_MS = 600_000

interface Remembered {
  /** The last good read; undefined while there has been none. */
  readonly found: Extract<CredentialRead, { state: 'Found' }> | undefined
  /** Why it cannot be used or read again now. */
  readonly problem: Exclude<CredentialRead, { state: 'Found' }> | undefined
  readonly former: { readonly sum: string; readonly untilMs: number } | undefined
  readonly dueAtMs: number
}

/** How soon something has to be done about a credential. */
export interface CredentialDue {
  readonly ref: CredentialRef
  readonly inMs: number
}

/** Remembers by Secret and data key. */
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

  /** ms until it is read again; 0 when that is due. */
  readInMs(ref: CredentialRef): number {
    const known = this.#known.get(credentialKey(ref))
    return known === undefined ? 0 : Math.max(0, known.dueAtMs - this.#now())
  }

  /** ms until the former credential is no longer offered; undefined without one. */
  formerEndsInMs(ref: CredentialRef): number | undefined {
    const former = this.#known.get(credentialKey(ref))?.former
    return former === undefined || this.#isOver(former) ? undefined : former.untilMs - this.#now()
  }

  /** The value, for the Secrets that gateways mount. */
  valueOf(ref: CredentialRef): string | undefined {
    const known = this.#known.get(credentialKey(ref))
    return known?.problem?.state === 'NotFound' ? undefined : known?.found?.value
  }

  /** @returns whether what models see of it has changed */
  store(ref: CredentialRef, read: CredentialRead): boolean {
    const key = credentialKey(ref)
    const before = this.#known.get(key)
    const seen = visible(this.observe(ref))
    this.#known.set(key, { ...this.#merge(before, read), dueAtMs: this.#dueAtMs(read) })
    return seen !== visible(this.observe(ref))
  }

  /** Has it read again at once, because a model that uses it was edited. */
  expire(ref: CredentialRef): void {
    const known = this.#known.get(credentialKey(ref))
    if (known) this.#known.set(credentialKey(ref), { ...known, dueAtMs: -Infinity })
  }

  /** No model uses it any more. */
  forget(ref: CredentialRef): void {
    this.#known.delete(credentialKey(ref))
  }

  #merge(before: Remembered | undefined, read: CredentialRead): Omit<Remembered, 'dueAtMs'> {
    const former = before?.former
    if (read.state === 'Unreadable') return { found: before?.found, problem: read, former }
    if (read.state === 'NotFound') return { found: undefined, problem: read, former: undefined }
    const isRotated = before?.found !== undefined && before.found.sum !== read.sum
    const replaced = isRotated ? { sum: before.found.sum, untilMs: this.#now() + FORMER_FOR_MS } : former
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

function visible(credential: ObservedCredential): string {
  return JSON.stringify(credential, (_key, value: unknown) => (value instanceof Set ? [...value] : value))
}
