/**
 * Resolves the names of backends with getaddrinfo, which knows short names, search domains and the hosts file. Each call holds a libuv
 * thread until the name server answers, or for 10 s and more. Therefore a name has one look-up at a time, a namespace has one, and the
 * process has fewer than there are threads. Addresses are cached, and stay in use for some minutes while their name server does not answer
 * (decision 19).
 */
import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import type { Clock } from '#platform/clock.ts'

/** Addresses found are fresh for this long, ms. */
const FRESH_MS = 10_000
/** Time for which addresses stay usable while a refresh runs or has failed, ms. */
const USABLE_MS = 300_000
/**
 * Times for which a failure is cached, ms. The longer one applies after a slow look-up. A request then starts another look-up in the
 * background earlier, at first after the shorter time, then after twice as long each time: the name server may only have been late.
 */
const FAILED_MS = 2_000
const SILENT_MS = 30_000
/** A look-up that took longer than this, ms, has met a silent name server. */
const SILENT_AFTER_MS = 2_000
const PER_NAMESPACE = 1
/** Maximum number of cached names; the oldest are dropped. */
const MAX_NAMES = 4_096

/** Resolves a name to all its addresses by the system; tests pass their own. */
export type SystemLookup = (
  hostname: string,
  options: { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

type Answer =
  | { readonly addresses: readonly LookupAddress[]; readonly atMs: number }
  | {
      readonly error: NodeJS.ErrnoException
      readonly untilMs: number
      readonly againMs: number
      readonly pauseMs: number
      readonly former: readonly LookupAddress[] | undefined
    }

type Waiting = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void

interface Job {
  readonly hostname: string
  readonly namespace: string
}

interface NameLookupOptions {
  readonly clock: Clock
  /** Maximum number of running look-ups of the process: less than the number of threads. */
  readonly maxInFlight: number
  readonly system?: SystemLookup
}

export class NameLookup {
  readonly #options: NameLookupOptions
  readonly #answers = new Map<string, Answer>()
  readonly #waiting = new Map<string, Waiting[]>()
  /** Waiting look-ups, oldest first. A later one may start first, because of the bound per namespace. */
  readonly #queue: Job[] = []
  readonly #inFlight = new Map<string, number>()
  #total = 0

  constructor(options: NameLookupOptions) {
    this.#options = options
  }

  /** @param namespace of the backend @param done receives the addresses, never within the call */
  find(hostname: string, namespace: string, done: Waiting): void {
    const known = this.#answers.get(hostname)
    const usable = known && this.#usable(known)
    if (usable === undefined) return this.#refresh({ hostname, namespace }, done)
    if (this.#isStale(known)) this.#refresh({ hostname, namespace })
    queueMicrotask(() => (usable instanceof Error ? done(usable, []) : done(null, usable)))
  }

  /** @returns why the name has no address now, while the failure is cached; undefined if a try may succeed */
  failure(hostname: string): NodeJS.ErrnoException | undefined {
    const known = this.#answers.get(hostname)
    const usable = known && this.#usable(known)
    return usable instanceof Error ? usable : undefined
  }

  /** @returns undefined if the name needs a look-up first */
  #usable(answer: Answer): readonly LookupAddress[] | NodeJS.ErrnoException | undefined {
    const now = this.#options.clock.monotonic()
    if ('addresses' in answer) return now - answer.atMs < USABLE_MS ? answer.addresses : undefined
    if (now >= answer.untilMs) return undefined
    return answer.former ?? answer.error
  }

  #isStale(answer: Answer | undefined): boolean {
    if (answer === undefined) return false
    return this.#options.clock.monotonic() >= ('addresses' in answer ? answer.atMs + FRESH_MS : answer.againMs)
  }

  /** @param done waits for the answer; undefined if an older answer was already returned */
  #refresh(job: Job, done?: Waiting): void {
    const waiting = this.#waiting.get(job.hostname)
    if (waiting) return void (done && waiting.push(done))
    this.#waiting.set(job.hostname, done ? [done] : [])
    this.#queue.push(job)
    this.#next()
  }

  #next(): void {
    while (this.#total < this.#options.maxInFlight) {
      const index = this.#queue.findIndex(({ namespace }) => (this.#inFlight.get(namespace) ?? 0) < PER_NAMESPACE)
      const [job] = index < 0 ? [] : this.#queue.splice(index, 1)
      if (!job) return
      this.#start(job)
    }
  }

  #start({ hostname, namespace }: Job): void {
    const { clock, system = systemLookup } = this.#options
    const startedMs = clock.monotonic()
    this.#count(namespace, 1)
    system(hostname, { all: true }, (error, addresses) => {
      this.#count(namespace, -1)
      this.#remember(hostname, error ?? addresses, startedMs)
      const waiting = this.#waiting.get(hostname) ?? []
      this.#waiting.delete(hostname)
      for (const done of waiting) done(error, error ? [] : addresses)
      this.#next()
    })
  }

  #remember(hostname: string, found: readonly LookupAddress[] | NodeJS.ErrnoException, startedMs: number): void {
    const now = this.#options.clock.monotonic()
    const former = this.#answers.get(hostname)
    this.#answers.delete(hostname)
    const isSilent = now - startedMs > SILENT_AFTER_MS
    this.#answers.set(hostname, found instanceof Error ? failed(found, former, { now, isSilent }) : { addresses: found, atMs: now })
    if (this.#answers.size > MAX_NAMES) for (const oldest of this.#answers.keys()) return void this.#answers.delete(oldest)
  }

  #count(namespace: string, change: 1 | -1): void {
    this.#total += change
    const count = (this.#inFlight.get(namespace) ?? 0) + change
    if (count > 0) this.#inFlight.set(namespace, count)
    else this.#inFlight.delete(namespace)
  }
}

function failed(error: NodeJS.ErrnoException, former: Answer | undefined, { now, isSilent }: { now: number; isSilent: boolean }): Answer {
  const pauseMs = isSilent && former && 'error' in former ? Math.min(2 * former.pauseMs, SILENT_MS) : FAILED_MS
  const isUsable = former !== undefined && 'addresses' in former && now - former.atMs < USABLE_MS
  const untilMs = now + (isSilent ? SILENT_MS : FAILED_MS)
  return { error, untilMs, againMs: now + pauseMs, pauseMs, former: isUsable ? former.addresses : undefined }
}
