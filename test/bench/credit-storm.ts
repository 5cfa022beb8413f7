/** How long one account's first payment and the end of another one's keys take: usually, while many Credits are applied at once, and during a loop of edits. */
import { setTimeout as sleep } from 'node:timers/promises'
import { atOnce, numbered } from '../support/at-once.ts'
import { freePort } from '../support/free-port.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'
import { accountManifest, creditManifest, CreditWatch, paymentManifest, planManifest } from './many-credits.ts'
import { GROUP, keyManifest, type KeyName, KeyWatch, WIDTH } from './many-keys.ts'
import { type BenchSite, type Bound, median, memoryMib, quantile, shown, tableOf, withProgress } from './part.ts'
import { Prober, type ProbeQuality } from './prober.ts'

/** Median during a storm ÷ median without one. */
const RATIO: Bound = { must: 2 }
/** Of the 99th percentile of first payments without a storm, ms: docs/money.md promises a second. */
export const PAID_MS: Bound = { must: 1_000 }
const PROBES = 20
/** Time between two probes outside of a storm of Credits, ms. */
const PAUSE_MS = 100
const PROGRESS_EVERY_MS = 20
/** Longest time of one storm, ms. */
const STORM_DEADLINE_MS = 300_000
const MODEL = 'credits-model'
/** The accounts of the storm, of the loop of edits, and of the keys that end. */
const [STORMED, EDITED, ENDED] = ['credits-stormed', 'credits-edited', 'credits-ended'] as const
const PHASES = ['without a storm', 'storm of Credits', 'loop of edits'] as const
type PhaseName = (typeof PHASES)[number]

interface Phase {
  readonly name: PhaseName
  /** From the answer of the API server to a Credit until every gateway admits the key of its account, ms. */
  readonly paid: readonly number[]
  /** From the answer to a suspension or deletion until every gateway refuses the key, ms. */
  readonly ended: readonly number[]
}

export interface StormReport extends ProbeQuality {
  readonly credits: number
  /** Of each storm: until all its Credits were Booked, s. */
  readonly seconds: readonly number[]
  readonly edits: number
  readonly phases: readonly Phase[]
  /** First payments without a storm, 99th percentile, ms. */
  readonly paidMs: number
  readonly ratios: ReadonlyArray<{ readonly what: string; readonly value: number; readonly bound: Bound }>
  readonly operatorPeakMib: number
}

/** @param site `isQuick`: one small round */
export async function creditStorm(site: BenchSite, stack: Stack): Promise<StormReport> {
  const [rounds, credits] = site.isQuick ? [1, 200] : [3, 2_000]
  const model = { ip: site.ip, port: await freePort(), name: MODEL }
  const prober = new Prober(stack, model)
  const keys = new KeyWatch(stack.kube, stack.namespaces)
  const watch = new CreditWatch(stack.kube)
  try {
    const bench = new CreditStorm({ stack, prober, keys, watch }, credits)
    await bench.prepare(model.port)
    for (let round = 0; round < rounds; round += 1)
      for (const name of PHASES)
        await withProgress(
          site,
          `credits: ${name}, round ${round + 1} of ${rounds}`,
          () => bench.done,
          () => bench.run(name, round),
        )
    return { ...bench.report(), ...(await prober.close()) }
  } finally {
    keys.stop()
    watch.stop()
    await prober.stop()
  }
}

interface Parts {
  readonly stack: Stack
  readonly prober: Prober
  readonly keys: KeyWatch
  readonly watch: CreditWatch
}

class CreditStorm {
  readonly #parts: Parts
  readonly #credits: number
  readonly #seconds: number[] = []
  readonly #paid = new Map<PhaseName, number[]>(PHASES.map((name) => [name, []]))
  readonly #ended = new Map<PhaseName, number[]>(PHASES.map((name) => [name, []]))
  #edits = 0

  constructor(parts: Parts, credits: number) {
    this.#parts = parts
    this.#credits = credits
  }

  get done(): Readonly<Record<string, number>> {
    const count = (times: ReadonlyMap<PhaseName, readonly number[]>): number => [...times.values()].flat().length
    return { booked: this.#parts.watch.booked, 'first payments': count(this.#paid), 'ends of keys': count(this.#ended), edits: this.#edits }
  }

  async prepare(port: number): Promise<void> {
    const { stack, watch } = this.#parts
    const { kube, namespace } = stack
    await stack.exposeService('mock', port)
    const backends = [{ name: 'mock', service: { name: 'mock', port }, upstreamModel: 'mock' }]
    await stack.apply('ServedModel', MODEL, { backends, pricing: { inputPerMillion: '0', outputPerMillion: '0' } })
    await stack.untilCondition('ServedModel', MODEL, 'Ready')
    await kube.create(planManifest())
    for (const account of [STORMED, EDITED, ENDED]) {
      await kube.create(accountManifest(account, namespace))
      await kube.create(creditManifest(`first-${account}`, account))
    }
    await watch.until(3)
  }

  async run(name: PhaseName, round: number): Promise<void> {
    const probes = await this.#probes(name, `${PHASES.indexOf(name)}-${round}`)
    if (name === 'storm of Credits') return await this.#storm(probes, round)
    let isOver = false
    const editing = name === 'loop of edits' ? this.#edit(() => isOver) : Promise.resolve()
    editing.catch(() => undefined) // awaited below, after the probes
    try {
      for (const probe of probes) {
        await probe()
        await sleep(PAUSE_MS)
      }
    } finally {
      isOver = true
    }
    await editing
  }

  report(): Omit<StormReport, keyof ProbeQuality> {
    const phases = PHASES.map((name) => ({ name, paid: this.#paid.get(name) ?? [], ended: this.#ended.get(name) ?? [] }))
    const [usual, ...busy] = phases
    const ratios = busy.flatMap(({ name, paid, ended }) => [
      { what: `a first payment, ${name}`, value: median(paid) / median(usual?.paid ?? []), bound: RATIO },
      { what: `the end of a key, ${name}`, value: median(ended) / median(usual?.ended ?? []), bound: RATIO },
    ])
    const operatorPeakMib = memoryMib(this.#parts.stack.operator.process.pid).peak
    const paidMs = quantile(usual?.paid ?? [], 0.99)
    return { credits: this.#credits, seconds: this.#seconds, edits: this.#edits, phases, paidMs, ratios, operatorPeakMib }
  }

  /** First payments of accounts of their own, and ends of keys, in turn. @param id unique */
  async #probes(name: PhaseName, id: string): Promise<ReadonlyArray<() => Promise<void>>> {
    const { stack, prober, keys } = this.#parts
    const { kube, namespace } = stack
    const accounts = numbered(`credits-paid-${id}`, PROBES)
    const poor = accounts.map((account): KeyName => ({ namespace, name: account }))
    const rich = numbered(`credits-end-${id}`, PROBES).map((key): KeyName => ({ namespace, name: key }))
    await atOnce(accounts, (account) => kube.create(accountManifest(account, namespace)), WIDTH)
    await atOnce([...poor, ...rich], (key, at) => kube.create(keyOf(key, accounts[at] ?? ENDED)), WIDTH)
    await waitFor('all keys to have a Secret', () => keys.progress([...poor, ...rich]).issued === 2 * PROBES)
    await keys.untilReady(rich)
    await this.#untilRefused(poor)
    const pay = async (key: KeyName): Promise<void> => {
      this.#paid.get(name)?.push(await prober.pay(creditManifest(`pay-${key.name}`, key.name), keys.credential(key)))
    }
    const end = async (key: KeyName, at: number): Promise<void> => {
      this.#ended.get(name)?.push(await prober.end(key, keys.credential(key), at % 2 === 0 ? 'suspend' : 'delete'))
    }
    return poor.flatMap((key, at) => [() => pay(key), async () => end(rich[at] ?? key, at)])
  }

  /** Every gateway knows the keys, and that their accounts have no balance. */
  async #untilRefused(poor: readonly KeyName[]): Promise<void> {
    const { stack, keys } = this.#parts
    const body = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 })
    for (const { url } of stack.gateways)
      for (const key of poor) {
        const headers = { authorization: `Bearer ${keys.credential(key)}`, 'content-type': 'application/json' }
        const isRefused = async (): Promise<boolean> => {
          const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
          await answer.body?.cancel()
          return answer.status === 402
        }
        await waitFor(`a call of ${key.name} to be refused`, isRefused)
      }
  }

  /** The probes are spread over the progress of the storm: manifests and statuses count half each. */
  async #storm(probes: ReadonlyArray<() => Promise<void>>, round: number): Promise<void> {
    const { stack, watch } = this.#parts
    const before = watch.booked
    const started = performance.now()
    let created = 0
    const create = async (payment: string, at: number): Promise<void> => {
      await stack.kube.create(paymentManifest(payment, STORMED, at))
      created += 1
    }
    const creating = atOnce(numbered(`storm-${round}`, this.#credits), create, WIDTH)
    const running: Promise<void>[] = []
    const probing = async (): Promise<boolean> => {
      const share = (created + watch.booked - before) / (2 * this.#credits)
      for (const probe of probes.slice(running.length, Math.ceil(share * probes.length))) running.push(probe())
      return running.length === probes.length
    }
    const all = waitFor('a probe after each part of the storm', probing, { everyMs: PROGRESS_EVERY_MS, deadlineMs: STORM_DEADLINE_MS })
    await Promise.all([creating, all])
    await Promise.all(running)
    await watch.until(before + this.#credits + PROBES)
    this.#seconds.push((performance.now() - started) / 1_000)
  }

  /** Changes the limits of one account, one edit after the other. */
  async #edit(isOver: () => boolean): Promise<void> {
    const path = objectPath(GROUP, 'Account', undefined, EDITED)
    for (; !isOver(); this.#edits += 1)
      await this.#parts.stack.kube.merge(path, { spec: { limits: { requestsPerMinute: 1_000 + (this.#edits % 1_000) } } })
  }
}

function keyOf(key: KeyName, account: string): TestObject {
  return keyManifest(key, { accountRef: { name: account } })
}

export function stormLines({ credits, seconds, edits, phases, paidMs, ratios, operatorPeakMib, ...quality }: StormReport): string[] {
  const ms = (values: readonly number[], share: number): string => quantile(values, share).toFixed(0)
  const rows = phases.map(({ name, paid, ended }) => ({
    '': name,
    'paid p50 ms': ms(paid, 0.5),
    'paid p99': ms(paid, 0.99),
    'ended p50 ms': ms(ended, 0.5),
    'ended p99': ms(ended, 0.99),
    probes: String(paid.length + ended.length),
  }))
  return [
    `${credits} Credits of one account applied at once, ${WIDTH} calls in flight: all Booked after ${seconds.map((one) => one.toFixed(1)).join(', ')} s; ${edits} edits of another account`,
    "paid: from the API server's answer to the first Credit of an account until every gateway admits its key. ended: until every gateway answers 401.",
    ...tableOf(rows),
    `  a first payment without a storm, p99 ${shown(paidMs, PAID_MS, 'ms', 0)}`,
    ...ratios.map(({ what, value, bound }) => `  ${what} ÷ usual ${shown(value, bound, '', 2)}`),
    `  resolution ${quality.resolutionMs.toFixed(0)} ms; ended keys admitted again: ${quality.admittedAgain}; operator at most ${operatorPeakMib.toFixed(0)} MiB`,
  ]
}
