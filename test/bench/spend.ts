/**
 * The cost of budgets in the operator, and the age of the durable spend: while every key spends each second and some other keys end, while no
 * key spends, and after Redis was emptied. The spend of a key is the time of its write, so the Secrets show how old their values are.
 */
import { inFlight } from './in-flight.ts'
import { GROUP, type KeyName } from './key-watch.ts'
import { compared, STILL_WORKS_P99, timesOf, type Bound } from './operator-report.ts'
import { type PartResult, type Progress, skippedPart } from './operator-parts.ts'
import { KUBELET_LAG_MS, missingControlPlane, OPERATOR_ENV, type OwnLabSite, withStack } from './own-lab.ts'
import { cpuMs, memory, toMib } from './proc.ts'
import type { Probe } from './probe-protocol.ts'
import { Prober } from './prober.ts'
import { quantile } from './statistics.ts'
import { budgetField } from '#contract/ledger/ledger-layout.ts'
import { SHARDS_LABEL } from '#contract/records/mounted-folder.ts'
import { ledgerKeys, settledSubjects } from '#contract/redis/redis-keys.ts'
import { spendCodec } from '../../operator/books/spend-entry.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'

const FIELD = budgetField('life:Currency:Lifetime', 0)
const BUDGET = { name: 'life', amount: '900000000', unit: 'Currency', window: 'Lifetime', onExceeded: 'Block' }
const WIDTH = 32
const WARM_UP_MS = 20_000
const SPEND_EVERY_MS = 1_000
/** Time between two decodings of all Secrets, which take processor time from the measured programs, ms. */
const LOOK_EVERY_MS = 4_000
/** Reads of the Secrets for each decoding. Each read counts the writes of the Secrets by their versions. */
const LOOKS = 4
/** Keys whose spend is written in one round trip. */
const CHUNK = 500
/** Keys that are suspended and deleted in turn while all others spend. */
const PROBES = 20
/** How old durable spend may be. */
const CHECKPOINT_AGE: Bound = { name: 'age of the oldest durable spend', unit: 's', must: 10 }
/** Writes of all Secrets of durable spend together. */
const SECRET_WRITES: Bound = { name: 'writes of spend Secrets', unit: '/s', must: 4 }

/** The size of the measurement. */
export interface SpendOptions {
  /** Keys with a budget. */
  readonly keys: number
  /** Length of the phase in which all of them spend, s; the phase without spend lasts half of it. */
  readonly seconds: number
}

interface Reading {
  readonly atMs: number
  readonly operatorCpuMs: number
  readonly redisCpuMs: number
  readonly redisCalls: number
  readonly reads: number
  readonly statuses: number
}

/** One phase. */
interface Phase {
  readonly name: string
  readonly ages: number[]
  readonly secretWrites: number
  readonly bytes: number
  readonly before: Reading
  readonly after: Reading
}

/** The keys that ended during the phase. */
interface EndedKeys {
  readonly probes: readonly Probe[]
  /** Answers at the end that admitted one of these keys again. */
  readonly admittedAgain: number
}

class SpendBench {
  readonly #stack: Stack
  readonly #uids: string[] = []
  readonly #probes: readonly KeyName[]
  #startedMs = 0

  constructor(stack: Stack) {
    this.#stack = stack
    this.#probes = Array.from({ length: PROBES }, (_, at) => ({ name: `ended-${at}`, namespace: stack.namespaces[1] ?? '' }))
  }

  async issue(keys: number): Promise<void> {
    const { namespace } = this.#stack
    await inFlight(WIDTH, this.#probes, (key) => this.#create(key))
    const names = Array.from({ length: keys }, (_, at) => `key-${at}`)
    await inFlight(WIDTH, names, async (name) => this.#uids.push(await this.#create({ name, namespace })))
    await waitFor('every budget to be seeded', async () => (await this.seeded()) === keys, { deadlineMs: 600_000, everyMs: 1_000 })
    await waitFor('the operator to have nothing to do', async () => queued(await this.#stack.operator.metrics()) === 0, {
      deadlineMs: 900_000,
      everyMs: 2_000,
    })
  }

  /** @returns its uid */
  async #create({ name, namespace }: KeyName): Promise<string> {
    const spec = { models: ['*'], budgets: [BUDGET] }
    const { metadata } = await this.#stack.kube.create({ apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace }, spec })
    return metadata.uid ?? ''
  }

  /** Ends keys of another namespace one after another, spread over this time. */
  async endKeys(overMs: number): Promise<EndedKeys> {
    const prober = new Prober(
      this.#stack.site.plane,
      this.#stack.gateways.map(({ url }) => url),
    )
    const probes: Probe[] = []
    try {
      for (const [at, key] of this.#probes.entries()) {
        const { SERVICE_API_KEY: credential = '' } = await this.#stack.secret(key.name, key.namespace)
        probes.push(await prober.probe(key, credential, at % 2 === 0 ? 'suspend' : 'delete'))
        await pause(overMs / PROBES)
      }
      const { admittedAgain } = await prober.close()
      return { probes, admittedAgain }
    } finally {
      await prober.stop()
    }
  }

  /** Number of budgets that have a seed. */
  async seeded(): Promise<number> {
    const pipeline = this.#stack.redis.admin.pipeline()
    for (const uid of this.#uids) pipeline.hexists(ledgerKeys('hg', uid).budget, 'seed')
    return ((await pipeline.exec()) ?? []).filter(([, is]) => is === 1).length
  }

  /** Runs one phase. With `spends`, every key spends each second. */
  async phase(name: string, seconds: number, spends: boolean): Promise<Phase> {
    this.#startedMs ||= performance.now()
    const warm = this.#untilMs(WARM_UP_MS, spends)
    await this.#look(warm)
    const before = await this.#reading()
    const seen = await this.#look(this.#untilMs(seconds * 1_000, spends))
    return { name, ...seen, before, after: await this.#reading() }
  }

  /** @returns s until every key has its spend again */
  async wipe(): Promise<number> {
    const started = performance.now()
    await this.#stack.redis.admin.flushall()
    await waitFor('every budget to be seeded again', async () => (await this.seeded()) === this.#uids.length, { deadlineMs: 120_000 })
    return (performance.now() - started) / 1_000
  }

  async #untilMs(ms: number, spends: boolean): Promise<void> {
    const end = performance.now() + ms
    while (performance.now() < end) {
      const round = performance.now()
      if (spends) await this.#spend()
      await pause(Math.max(0, SPEND_EVERY_MS - (performance.now() - round)))
    }
  }

  async #spend(): Promise<void> {
    for (let at = 0; at < this.#uids.length; at += CHUNK) {
      const some = this.#uids.slice(at, at + CHUNK)
      const pipeline = this.#stack.redis.admin.pipeline()
      const spent = String(Math.round(performance.now() - this.#startedMs) + 1)
      for (const uid of some) pipeline.hset(ledgerKeys('hg', uid).budget, `${FIELD}:s`, spent)
      pipeline.sadd(settledSubjects('hg'), ...some)
      await pipeline.exec()
      await pause((SPEND_EVERY_MS * CHUNK) / this.#uids.length / 2)
    }
  }

  /** Reads the Secrets again and again while the work goes on. */
  async #look(work: Promise<void>): Promise<Pick<Phase, 'ages' | 'secretWrites' | 'bytes'>> {
    const ages: number[] = []
    const versions = new Map<string, string>()
    let secretWrites = 0
    let bytes = 0
    let isOver = false
    const over = work.then(() => (isOver = true))
    for (let at = 0; !isOver; at += 1) {
      const secrets = await this.#secrets()
      for (const { metadata } of secrets) {
        const version = metadata.resourceVersion ?? ''
        if (versions.has(metadata.name) && versions.get(metadata.name) !== version) secretWrites += 1
        versions.set(metadata.name, version)
      }
      const readMs = performance.now()
      const oldest = at % LOOKS === 0 ? await oldestSpend(secrets, new Set(this.#uids)) : undefined
      if (oldest !== undefined) ages.push((readMs - this.#startedMs - oldest) / 1_000)
      bytes = Math.max(bytes, ...secrets.map(({ data }) => Buffer.byteLength(String(data.records), 'base64')))
      await Promise.race([over, pause(LOOK_EVERY_MS / LOOKS)])
    }
    await over
    return { ages, secretWrites, bytes }
  }

  async #secrets(): Promise<TestObject[]> {
    const { kube, operatorNamespace } = this.#stack
    return await kube.list(`${objectPath('v1', 'Secret', operatorNamespace)}?labelSelector=${encodeURIComponent(`${SHARDS_LABEL}=spend`)}`)
  }

  async #reading(): Promise<Reading> {
    const { operator, redis } = this.#stack
    const stats = await redis.admin.info('commandstats')
    const calls = [...stats.matchAll(/^cmdstat_(fcall|spop|scan|unlink):calls=(\d+)/gm)].reduce(
      (sum, [, , count]) => sum + Number(count),
      0,
    )
    const cpu = await redis.admin.info('cpu')
    const cpuOf = (name: string): number => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(cpu)?.[1] ?? 0)
    const { pid } = operator.process
    return {
      atMs: performance.now(),
      operatorCpuMs: cpuMs([pid]),
      redisCpuMs: (cpuOf('used_cpu_user') + cpuOf('used_cpu_sys')) * 1_000,
      redisCalls: calls,
      reads: (await operator.metric('headgate_operator_ledger_reads_total')) ?? 0,
      statuses: patches(await operator.metrics()),
    }
  }

  get operatorMib(): number {
    return toMib(memory([this.#stack.operator.process.pid ?? 0]).rssMb)
  }
}

/** Objects that wait in the work queue. */
function queued(metrics: string): number {
  return [...metrics.matchAll(/^workqueue_depth\{[^}]*\} (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
}

function patches(metrics: string): number {
  return [...metrics.matchAll(/^rest_client_requests_total\{[^}]*method="PATCH"[^}]*\} (\d+)/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )
}

/** The oldest spend of these keys in the Secrets. */
async function oldestSpend(secrets: readonly TestObject[], uids: ReadonlySet<string>): Promise<number | undefined> {
  let oldest: number | undefined
  for (const { data } of secrets) {
    for (const { entry } of (await spendCodec.decode(data as Record<string, string>)).entries) {
      const spent = entry && uids.has(entry.uid) ? entry.spent.get(FIELD) : undefined
      if (spent !== undefined) oldest = Math.min(oldest ?? Infinity, spent)
    }
  }
  return oldest
}

interface SpendResult extends EndedKeys {
  readonly keys: number
  readonly spending: Phase
  readonly idle: Phase
  readonly seededSeconds: number
  readonly operatorMib: number
}

/** The cost of a phase per second. */
function rates({
  secretWrites,
  before,
  after,
}: Phase): Readonly<Record<'writes' | 'redisCalls' | 'reads' | 'redisCpu' | 'operatorCpu' | 'patches', number>> {
  const seconds = (after.atMs - before.atMs) / 1_000
  const rate = (of: (reading: Reading) => number): number => (of(after) - of(before)) / seconds
  return {
    writes: secretWrites / seconds,
    redisCalls: rate((one) => one.redisCalls),
    reads: rate((one) => one.reads),
    redisCpu: rate((one) => one.redisCpuMs) / 10,
    operatorCpu: rate((one) => one.operatorCpuMs) / 10,
    patches: rate((one) => one.statuses),
  }
}

function renderPhase(phase: Phase): string[] {
  const { writes, redisCalls, reads, redisCpu, operatorCpu, patches: statuses } = rates(phase)
  return [
    `  ${phase.name}, ${((phase.after.atMs - phase.before.atMs) / 1_000).toFixed(0)} s:`,
    `    spend Secrets: ${writes.toFixed(2)} writes/s, largest ${(phase.bytes / 1024).toFixed(0)} KiB; ${compared(SECRET_WRITES, writes)}`,
    `    Redis: ${redisCalls.toFixed(0)} calls of the operator/s, ${reads.toFixed(0)} reads of budgets/s, CPU ${redisCpu.toFixed(1)} % of a core (the load included)`,
    `    operator: CPU ${operatorCpu.toFixed(1)} % of a core, ${statuses.toFixed(1)} patches/s (statuses)`,
  ]
}

function render({ keys, spending, idle, probes, admittedAgain, seededSeconds, operatorMib }: SpendResult): string {
  const times = timesOf(probes)
  const [median, p99] = [quantile(times, 0.5), quantile(times, 0.99)]
  return [
    `spend: ${keys} keys with a budget`,
    ...renderPhase(spending),
    `    age of the oldest durable spend: median ${quantile(spending.ages, 0.5).toFixed(1)} s, worst ${worstAge(spending).toFixed(1)} s; ${compared(CHECKPOINT_AGE, worstAge(spending))}`,
    `    ${probes.length} keys that end at the same time still work for: median ${median.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms; ${compared(STILL_WORKS_P99, p99)}; admitted again: ${admittedAgain}`,
    ...renderPhase(idle),
    `  all budgets seeded ${seededSeconds.toFixed(1)} s after FLUSHALL; operator ${operatorMib.toFixed(0)} MiB`,
  ].join('\n')
}

function worstAge({ ages }: Phase): number {
  return ages.length === 0 ? Infinity : Math.max(...ages)
}

function isMissed({ spending, idle, probes, admittedAgain }: SpendResult): boolean {
  const isHeld = [
    worstAge(spending) <= CHECKPOINT_AGE.must,
    rates(spending).writes <= SECRET_WRITES.must,
    rates(idle).writes <= SECRET_WRITES.must,
    quantile(timesOf(probes), 0.99) <= STILL_WORKS_P99.must,
    admittedAgain === 0,
  ]
  return isHeld.includes(false)
}

/** Measures one operator and two gateways with this number of keys, on a control plane of their own. */
export async function spendPart(site: OwnLabSite, { keys, seconds }: SpendOptions, say: Progress): Promise<PartResult> {
  const missing = missingControlPlane()
  if (missing !== undefined) return skippedPart('spend', missing)
  const options = {
    gateways: 2,
    namespaces: ['spend-keys', 'spend-ended'],
    kubeletLagMs: KUBELET_LAG_MS,
    operatorEnv: OPERATOR_ENV,
    gatewayEnv: { ACCESS_LOG: 'sample' },
  }
  const result = await withStack(site, options, async (stack): Promise<SpendResult> => {
    const bench = new SpendBench(stack)
    const started = performance.now()
    await bench.issue(keys)
    say(`spend: ${keys} keys with a budget after ${((performance.now() - started) / 1_000).toFixed(0)} s`)
    const spending = bench.phase('every key spends each second', seconds, true)
    const [phase, ended] = await Promise.all([spending, pause(WARM_UP_MS).then(() => bench.endKeys(seconds * 1_000))])
    const idle = await bench.phase('no key spends', seconds / 2, false)
    const seededSeconds = await bench.wipe()
    return { keys, spending: phase, idle, ...ended, seededSeconds, operatorMib: bench.operatorMib }
  })
  return { text: render(result), isMissed: isMissed(result), data: result }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
