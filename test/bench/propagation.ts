/**
 * Propagation: from the API server's answer until both gateways answer as expected. Real API server, Redis, operator and gateways; each
 * gateway is polled every 5 ms. Prints p50, p99 and max per change.
 */
import { Pool } from 'undici'
import { objectPath } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'
import { keyManifest } from './key-watch.ts'

/** One measured kind of change, ms. */
export interface PropagationRow {
  readonly change: string
  readonly times: readonly number[]
}

const POLL_MS = 5
/** Keys about which one gateway is asked at once: few while its answers are not the expected ones, many once they are. */
const FEW = 2
const MANY = 16
/** Only catches hangs. */
const DEADLINE_MS = 60_000

/**
 * Runs all changes: `oneByOne` keys in sequence, then `atOnce` keys together.
 * @param prefix of the names of these keys, for another run on the same stack
 */
export async function measurePropagation(stack: Stack, oneByOne: number, atOnce: number, prefix = ''): Promise<PropagationRow[]> {
  const issued = new IssuedKeys(stack)
  try {
    const serial = Array.from({ length: oneByOne }, (_, i) => `${prefix}serial-${i}`)
    const burst = Array.from({ length: atOnce }, (_, i) => `${prefix}burst-${i}`)
    return [...(await serialKeys(stack, issued, serial)), ...(await burstKeys(stack, issued, burst))]
  } finally {
    issued.stop()
    await Promise.all([...pollers.values()].map((poller) => poller.close()))
    pollers.clear()
  }
}

async function serialKeys(stack: Stack, issued: IssuedKeys, names: readonly string[]): Promise<PropagationRow[]> {
  const rows = { apply: [] as number[], suspend: [] as number[], resume: [] as number[], revoke: [] as number[], delete: [] as number[] }
  for (const [i, name] of names.entries()) {
    const { credential, ms } = await applied(stack, issued, name)
    rows.apply.push(ms)
    rows.suspend.push(await changed(stack, credential, () => setState(stack, name, 'Suspended'), 401))
    rows.resume.push(await changed(stack, credential, () => setState(stack, name, 'Active'), 200))
    if (i % 2 === 0) rows.revoke.push(await changed(stack, credential, () => setState(stack, name, 'Revoked'), 401))
    else rows.delete.push(await changed(stack, credential, () => stack.kube.remove(stack.path('ApiKey', name)), 401))
  }
  return Object.entries(rows).map(([change, times]) => ({ change: `${change}, one by one`, times }))
}

async function burstKeys(stack: Stack, issued: IssuedKeys, names: readonly string[]): Promise<PropagationRow[]> {
  await untilDescribed(stack)
  const made = await Promise.all(names.map((name) => applied(stack, issued, name)))
  const half = Math.floor(names.length / 2)
  return [
    { change: `apply, ${names.length} at once`, times: made.map(({ ms }) => ms) },
    await together('suspend', made, (name) => setState(stack, name, 'Suspended'), 401),
    await together('resume', made, (name) => setState(stack, name, 'Active'), 200),
    await together('revoke', made.slice(0, half), (name) => setState(stack, name, 'Revoked'), 401),
    await together('delete', made.slice(half), (name) => stack.kube.remove(stack.path('ApiKey', name)), 401),
  ]

  async function together(
    label: string,
    keys: readonly AppliedKey[],
    change: (name: string) => Promise<unknown>,
    expected: number,
  ): Promise<PropagationRow> {
    await untilDescribed(stack)
    const times = await Promise.all(keys.map(({ name, credential }) => changed(stack, credential, () => change(name), expected)))
    return { change: `${label}, ${keys.length} at once`, times }
  }
}

/** Waits until every status describes the present generation, so that no storm begins before the previous one is over. */
async function untilDescribed(stack: Stack): Promise<void> {
  const areDescribed = async (): Promise<boolean> => {
    const keys = await stack.kube.list(objectPath('headgate.dev/v1alpha1', 'ApiKey', stack.namespace))
    return keys.every(({ metadata, status }) => status?.['observedGeneration'] === metadata.generation)
  }
  await waitFor('every status to be written', areDescribed, { everyMs: 250 })
}

interface AppliedKey {
  readonly name: string
  readonly credential: string
  readonly ms: number
}

async function applied(stack: Stack, issued: IssuedKeys, name: string): Promise<AppliedKey> {
  await stack.kube.apply(keyManifest({ namespace: stack.namespace, name }))
  const started = performance.now()
  const credential = await issued.value(name)
  await until(stack, credential, 200)
  return { name, credential, ms: performance.now() - started }
}

/** Reads the values by one watch, as a client would: a read of each Secret every 5 ms would load the measured API server. */
class IssuedKeys {
  readonly #values = new Map<string, { readonly promise: Promise<string>; readonly resolve: (value: string) => void }>()
  readonly #stop = new AbortController()

  constructor(stack: Stack) {
    void stack.kube.watch(objectPath('v1', 'Secret', stack.namespace), this.#stop.signal, ({ object }) => {
      const text = (object.data as Record<string, string> | undefined)?.['SERVICE_API_KEY']
      if (text !== undefined) this.#entry(object.metadata.name ?? '').resolve(Buffer.from(text, 'base64').toString())
    })
  }

  value(name: string): Promise<string> {
    return this.#entry(name).promise
  }

  stop(): void {
    this.#stop.abort()
  }

  #entry(name: string): { readonly promise: Promise<string>; readonly resolve: (value: string) => void } {
    const entry = this.#values.get(name) ?? Promise.withResolvers<string>()
    this.#values.set(name, entry)
    return entry
  }
}

async function changed(stack: Stack, credential: string, change: () => Promise<unknown>, expected: number): Promise<number> {
  await change()
  const started = performance.now()
  await until(stack, credential, expected)
  return performance.now() - started
}

function setState(stack: Stack, name: string, state: string): Promise<unknown> {
  return stack.kube.merge(stack.path('ApiKey', name), { spec: { state } })
}

/**
 * Asks one gateway about the waiting keys, starting with those that have waited longest: questions about hundreds of keys every 5 ms would
 * load the measured machine. So each time is an upper bound: a change may have reached the gateway before the turn of its key.
 */
class Poller {
  readonly #gateway: Pool
  readonly #waiting: Awaited[] = []
  #asked = 0
  #limit = FEW

  constructor(url: string) {
    this.#gateway = new Pool(url, { connections: MANY })
  }

  /** Resolves when the gateway answers a request with this credential with `expected`. */
  answers(credential: string, expected: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ credential, expected, resolve, reject, deadline: performance.now() + DEADLINE_MS })
    this.#next()
    return promise
  }

  close(): Promise<void> {
    return this.#gateway.close()
  }

  #next(): void {
    while (this.#asked < this.#limit) {
      const one = this.#waiting.shift()
      if (one === undefined) return
      this.#asked += 1
      void this.#ask(one).finally(() => {
        this.#asked -= 1
        this.#next()
      })
    }
  }

  /** Resolves when the key is settled, or waits for another question. */
  async #ask(one: Awaited): Promise<void> {
    try {
      const isThere = (await this.#status(one.credential)) === one.expected
      this.#limit = isThere ? MANY : FEW
      if (isThere) return one.resolve()
    } catch (error) {
      return one.reject(error)
    }
    if (performance.now() > one.deadline) return one.reject(new Error(`no propagation within ${DEADLINE_MS} ms`))
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    this.#waiting.unshift(one)
  }

  async #status(credential: string): Promise<number> {
    const { statusCode, body } = await this.#gateway.request({
      path: '/v1/models',
      method: 'GET',
      headers: { authorization: `Bearer ${credential}` },
    })
    await body.dump()
    return statusCode
  }
}

interface Awaited {
  readonly credential: string
  readonly expected: number
  readonly deadline: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const pollers = new Map<string, Poller>()

function pollerOf(url: string): Poller {
  const poller = pollers.get(url) ?? new Poller(url)
  pollers.set(url, poller)
  return poller
}

/** Resolves when every gateway answers as expected. */
async function until(stack: Stack, credential: string, expected: number): Promise<void> {
  await Promise.all(stack.gateways.map(({ url }) => pollerOf(url).answers(credential, expected)))
}
