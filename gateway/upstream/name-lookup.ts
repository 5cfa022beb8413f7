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
/** Times for which a failure is cached, ms; the longer one applies after a slow look-up. */
const FAILED_MS = 2_000
const SILENT_MS = 30_000
/** A look-up that took longer than this, ms, has met a silent name server. */
const SILENT_AFTER_MS = 2_000
/** Maximum number of cached names; the oldest are dropped. */
const MAX_NAMES = 4_096

/** Resolves a name to all its addresses by the system; tests pass their own. */
export type SystemLookup = (
  hostname: string,
  options: { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** What is known of a name. */
interface Known {
  /** Of the last look-up that succeeded, with its time, ms; -Infinity if none did. */
  readonly addresses: readonly LookupAddress[]
  readonly foundAtMs: number
  /** Of the last look-up, if it failed. */
  readonly error: NodeJS.ErrnoException | undefined
  /** Time from which the name is looked up again, ms. */
  readonly staleAtMs: number
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
  readonly #known = new Map<string, Known>()
  readonly #waiting = new Map<string, Waiting[]>()
  /** Waiting look-ups, oldest first. A later one may start first, because of the bound per namespace. */
  readonly #queue: Job[] = []
  /** Namespaces with a running look-up: each has at most one. */
  readonly #busy = new Set<string>()

  constructor(options: NameLookupOptions) {
    this.#options = options
  }

  /** @param namespace of the backend @param done receives the addresses, never within the call */
  find(hostname: string, namespace: string, done: Waiting): void {
    const usable = this.#usable(hostname)
    if (usable === undefined) return this.#refresh({ hostname, namespace }, done)
    if (this.#isStale(hostname)) this.#refresh({ hostname, namespace })
    queueMicrotask(() => (usable instanceof Error ? done(usable, []) : done(null, usable)))
  }

  /** @returns why the name has no address now, while the failure is cached; undefined if a try may succeed */
  failure(hostname: string): NodeJS.ErrnoException | undefined {
    const usable = this.#usable(hostname)
    return usable instanceof Error ? usable : undefined
  }

  /** @returns undefined if the name needs a look-up first */
  #usable(hostname: string): readonly LookupAddress[] | NodeJS.ErrnoException | undefined {
    const known = this.#known.get(hostname)
    if (known === undefined) return undefined
    if (this.#options.clock.monotonic() - known.foundAtMs < USABLE_MS) return known.addresses
    return this.#isStale(hostname) ? undefined : known.error
  }

  #isStale(hostname: string): boolean {
    return this.#options.clock.monotonic() >= (this.#known.get(hostname)?.staleAtMs ?? 0)
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
    while (this.#busy.size < this.#options.maxInFlight) {
      const index = this.#queue.findIndex(({ namespace }) => !this.#busy.has(namespace))
      const [job] = index < 0 ? [] : this.#queue.splice(index, 1)
      if (!job) return
      this.#start(job)
    }
  }

  #start({ hostname, namespace }: Job): void {
    const { clock, system = systemLookup } = this.#options
    const startedMs = clock.monotonic()
    this.#busy.add(namespace)
    system(hostname, { all: true }, (error, addresses) => {
      this.#busy.delete(namespace)
      this.#remember(hostname, error ?? addresses, startedMs)
      const waiting = this.#waiting.get(hostname) ?? []
      this.#waiting.delete(hostname)
      for (const done of waiting) done(error, error ? [] : addresses)
      this.#next()
    })
  }

  #remember(hostname: string, found: readonly LookupAddress[] | NodeJS.ErrnoException, startedMs: number): void {
    const now = this.#options.clock.monotonic()
    const { addresses = [], foundAtMs = -Infinity } = this.#known.get(hostname) ?? {}
    this.#known.delete(hostname)
    if (found instanceof Error) {
      const staleAtMs = now + (now - startedMs > SILENT_AFTER_MS ? SILENT_MS : FAILED_MS)
      this.#known.set(hostname, { addresses, foundAtMs, error: found, staleAtMs })
    } else this.#known.set(hostname, { addresses: found, foundAtMs: now, error: undefined, staleAtMs: now + FRESH_MS })
    if (this.#known.size > MAX_NAMES) for (const oldest of this.#known.keys()) return void this.#known.delete(oldest)
  }
}
