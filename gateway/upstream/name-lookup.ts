/**
 * Resolves the names of backends with getaddrinfo, which knows short names, search domains and the hosts file. Each call holds a libuv
 * thread until the name server answers, or for 10 s and more. Therefore a name has one look-up at a time, a namespace has one, and the
 * process has fewer than there are threads. Namespaces take turns. A namespace whose last look-up met a silent name server waits before its
 * next one, and all such namespaces share a part of the look-ups, so that they never delay the others. Addresses are cached, and stay in use
 * for some minutes while their name server does not answer (decision 19).
 */
import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { refuseAddress, type AddressRules } from '#contract/values/backend-address.ts'
import type { Clock } from '#platform/clock.ts'
import { TurnQueue } from '#platform/turn-queue.ts'
import { OUT_OF_FILES } from './backend-error.ts'

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
/** Maximum number of cached names, and of namespaces that are known as silent; the oldest are dropped. */
const MAX_NAMES = 4_096
/** Namespaces with a silent name server share one in this many of the look-ups, at least one. */
const PARTS_FOR_SILENT = 4

/** Resolves a name to all its addresses by the system; tests pass their own. */
export type SystemLookup = (
  hostname: string,
  options: { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** What is known of a name. Times are monotonic ms. */
interface Known {
  /** Of the last look-up that succeeded, with its time; -Infinity if none did. */
  readonly addresses: readonly LookupAddress[]
  readonly foundAtMs: number
  /** Of the last look-up if it failed, and the time until which the failure is cached. */
  readonly error: NodeJS.ErrnoException | undefined
  readonly untilMs: number
  /** Time from which a request starts another look-up in the background; after a failure, `pauseMs` later. */
  readonly staleAtMs: number
  readonly pauseMs: number
}

type Waiting = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void
/** Resolves a name to all its addresses: `NameLookup.find`. */
export type ResolveAll = (hostname: string, done: Waiting) => void

interface Job {
  readonly hostname: string
  readonly namespace: string
}

/** A namespace whose last look-up met a silent name server. Its next one starts at `untilMs`. */
interface Silence {
  readonly untilMs: number
  readonly pauseMs: number
}

interface NameLookupOptions {
  readonly clock: Clock
  /** Maximum number of running look-ups of the process: less than the number of threads. */
  readonly maxInFlight: number
  readonly system?: SystemLookup | undefined
}

export class NameLookup {
  readonly #options: NameLookupOptions
  readonly #known = new Map<string, Known>()
  /** Requests that wait for a name. */
  readonly #waiting = new Map<string, Waiting[]>()
  /** Names that are being looked up. */
  readonly #running = new Set<string>()
  /** Jobs in the queue, as text. A name waits in the queue of each namespace that needs the name: none waits for the turn of another. */
  readonly #queued = new Set<string>()
  readonly #queue = new TurnQueue<Job>()
  readonly #silent = new Map<string, Silence>()
  /** Namespaces with a running look-up: each has at most one. */
  readonly #busy = new Set<string>()

  constructor(options: NameLookupOptions) {
    this.#options = options
  }

  /** @param namespace of the backend @param done receives the addresses, never within the call */
  find(hostname: string, namespace: string, done: Waiting): void {
    const usable = this.#usable(hostname)
    if (usable === undefined) return this.#refresh({ hostname, namespace }, done)
    if (this.#options.clock.monotonic() >= (this.#known.get(hostname)?.staleAtMs ?? 0)) this.#refresh({ hostname, namespace })
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
    const now = this.#options.clock.monotonic()
    if (now - known.foundAtMs < USABLE_MS) return known.addresses
    return now < known.untilMs ? known.error : undefined
  }

  /** @param done waits for the answer; undefined if an older answer was already returned */
  #refresh(job: Job, done?: Waiting): void {
    const waiting = this.#waiting.get(job.hostname) ?? []
    this.#waiting.set(job.hostname, waiting)
    if (done) waiting.push(done)
    if (this.#running.has(job.hostname) || this.#queued.has(textOf(job))) return
    this.#queued.add(textOf(job))
    this.#queue.push(job, [job.namespace])
    this.#next()
  }

  #next(): void {
    while (this.#busy.size < this.#options.maxInFlight) {
      const job = this.#queue.take((namespace) => this.#mayStart(namespace))
      if (!job) return
      this.#queued.delete(textOf(job))
      const isDue = this.#waiting.has(job.hostname) && !this.#running.has(job.hostname)
      if (isDue) this.#start(job) // otherwise another namespace had its turn first
    }
  }

  #mayStart(namespace: string): boolean {
    if (this.#busy.has(namespace)) return false
    const silence = this.#silent.get(namespace)
    return silence === undefined || (this.#options.clock.monotonic() >= silence.untilMs && this.#hasSlotForSilent)
  }

  get #hasSlotForSilent(): boolean {
    let running = 0
    for (const namespace of this.#busy) if (this.#silent.has(namespace)) running += 1
    return running < Math.max(1, Math.floor(this.#options.maxInFlight / PARTS_FOR_SILENT))
  }

  #start({ hostname, namespace }: Job): void {
    const { clock, system = systemLookup } = this.#options
    const startedMs = clock.monotonic()
    this.#busy.add(namespace)
    this.#running.add(hostname)
    system(hostname, { all: true }, (error, addresses) => {
      this.#busy.delete(namespace)
      this.#running.delete(hostname)
      this.#heard(namespace, clock.monotonic() - startedMs > SILENT_AFTER_MS)
      if (!OUT_OF_FILES.has(error?.code)) this.#remember(hostname, error ?? addresses, startedMs)
      const waiting = this.#waiting.get(hostname) ?? []
      this.#waiting.delete(hostname)
      for (const done of waiting) done(error, error ? [] : addresses)
      this.#next()
    })
  }

  #heard(namespace: string, isSilent: boolean): void {
    const { clock } = this.#options
    const pauseMs = nextPause(this.#silent.get(namespace)?.pauseMs)
    this.#silent.delete(namespace)
    if (!isSilent) return
    this.#silent.set(namespace, { untilMs: clock.monotonic() + pauseMs, pauseMs })
    if (this.#silent.size > MAX_NAMES) dropOldest(this.#silent)
    clock.after(pauseMs, () => this.#next())
  }

  #remember(hostname: string, found: readonly LookupAddress[] | NodeJS.ErrnoException, startedMs: number): void {
    const now = this.#options.clock.monotonic()
    const former = this.#known.get(hostname)
    this.#known.delete(hostname)
    this.#known.set(hostname, found instanceof Error ? afterFailure(found, former, { now, startedMs }) : afterSuccess(found, now))
    if (this.#known.size > MAX_NAMES) dropOldest(this.#known)
  }
}

function textOf({ namespace, hostname }: Job): string {
  return `${namespace} ${hostname}`
}

function dropOldest(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) return void map.delete(oldest)
}

/** Pause after a look-up that met a silent name server: at first the shorter time, then twice as long each time. */
function nextPause(formerMs = 0): number {
  return Math.min(Math.max(2 * formerMs, FAILED_MS), SILENT_MS)
}

function afterSuccess(addresses: readonly LookupAddress[], now: number): Known {
  return { addresses, foundAtMs: now, error: undefined, untilMs: 0, staleAtMs: now + FRESH_MS, pauseMs: 0 }
}

function afterFailure(
  error: NodeJS.ErrnoException,
  former: Known | undefined,
  { now, startedMs }: { readonly now: number; readonly startedMs: number },
): Known {
  const isSilent = now - startedMs > SILENT_AFTER_MS
  const pauseMs = isSilent ? nextPause(former?.pauseMs) : FAILED_MS
  const { addresses = [], foundAtMs = -Infinity } = former ?? {}
  return { addresses, foundAtMs, error, untilMs: now + (isSilent ? SILENT_MS : FAILED_MS), staleAtMs: now + pauseMs, pauseMs }
}

export const REFUSED_ADDRESS = 'ERR_REFUSED_ADDRESS'

/**
 * Makes the `lookup` function of a socket, which checks addresses again: a name that was harmless when the manifest was checked may later
 * resolve to loopback or to a metadata server (DNS rebinding), so the first check alone proves nothing. It refuses a name if any of its
 * addresses is refused, because the socket may connect to any of them. The socket gets exactly the checked addresses. Literal addresses
 * never reach a look-up; the model table checks those.
 * @param namespace of the backend, whose own Services are inside the cluster
 */
export function guardedLookup(rules: AddressRules, resolveAll: ResolveAll, namespace?: string): LookupFunction {
  const ownRules = { ...rules, allowCluster: true }
  return (hostname, { all }, done) => {
    resolveAll(hostname, (error, addresses) => {
      const isOwn = namespace !== undefined && hostname.endsWith(`.${namespace}.svc`)
      const refused = error ?? refusal(hostname, addresses, isOwn ? ownRules : rules)
      const first = addresses?.[0]
      if (refused !== undefined || first === undefined) return done(refused ?? errorOf(`${hostname} has no address`, 'ENOTFOUND'), [])
      if (all) done(null, [...addresses])
      else done(null, first.address, first.family)
    })
  }
}

function refusal(hostname: string, addresses: readonly LookupAddress[], rules: AddressRules): NodeJS.ErrnoException | undefined {
  for (const { address } of addresses) {
    const reason = refuseAddress(address, rules)
    if (reason !== undefined) return errorOf(`${hostname} may not be called: it has become ${address}, and ${reason}`, REFUSED_ADDRESS)
  }
  return undefined
}

function errorOf(message: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), { code })
}
