/**
 * `node test/bench/spend.ts [keys] [seconds]`: what the operator's side of budgets costs, and how old its durable spend is, while every key spends
 * each second, while none does, and after Redis was emptied. The spend of a key is the time at which it was written, so the Secrets say how
 * old they are.
 */
import { runInside, type Inside, skipped } from './inside.ts'
import { inFlight } from './in-flight.ts'
import { GROUP } from './key-watch.ts'
import { describeMachine } from './machine.ts'
import { missingControlPlane, OPERATOR_ENV, withStack } from './own-lab.ts'
import { cpuMs, memory, toMib } from './proc.ts'
import { budgetField } from '../../gateway/shared/ledger-layout.ts'
import { SHARDS_LABEL } from '../../gateway/shared/mounted-folder.ts'
import { ledgerKeys, settledSubjects } from '../../gateway/shared/redis-keys.ts'
import { spendCodec } from '../../operator/ledger/spend-entry.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'

const FIELD = budgetField('life:Currency:Lifetime', 0)
const BUDGET = { name: 'life', amount: '900000000', unit: 'Currency', window: 'Lifetime', onExceeded: 'Block' }
const WIDTH = 32
const WARM_UP_MS = 20_000
const SPEND_EVERY_MS = 1_000
/** Reading all Secrets takes the processor from what is measured. */
const LOOK_EVERY_MS = 4_000
/** Their versions are read more often, to count their writes. */
const LOOKS = 4
/** Keys whose spend is written in one round trip. */
const CHUNK = 500

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

class SpendBench {
  readonly #stack: Stack
  readonly #uids: string[] = []
  #startedMs = 0

  constructor(stack: Stack) {
    this.#stack = stack
  }

  async issue(keys: number): Promise<void> {
    const { kube, namespace } = this.#stack
    const names = Array.from({ length: keys }, (_, at) => `key-${at}`)
    await inFlight(WIDTH, names, async (name) => {
      const spec = { models: ['*'], budgets: [BUDGET] }
      const { metadata } = await kube.create({ apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace }, spec })
      this.#uids.push(metadata.uid ?? '')
    })
    await waitFor('every budget to be seeded', async () => (await this.seeded()) === keys, { deadlineMs: 600_000, everyMs: 1_000 })
    await waitFor('the operator to have nothing to do', async () => queued(await this.#stack.operator.metrics()) === 0, {
      deadlineMs: 900_000,
      everyMs: 2_000,
    })
  }

  /** How many budgets have a seed. */
  async seeded(): Promise<number> {
    const pipeline = this.#stack.redis.admin.pipeline()
    for (const uid of this.#uids) pipeline.hexists(ledgerKeys('hg', uid).budget, 'seed')
    return ((await pipeline.exec()) ?? []).filter(([, is]) => is === 1).length
  }

  /** Every key spends each second, if they spend at all. */
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
      const oldest = at % LOOKS === 0 ? await oldestSpend(secrets) : undefined
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

/** The spend that is oldest, as the Secrets have it. */
async function oldestSpend(secrets: readonly TestObject[]): Promise<number | undefined> {
  let oldest: number | undefined
  for (const { data } of secrets) {
    for (const { entry } of (await spendCodec.decode(data as Record<string, string>)).entries) {
      const spent = entry?.spent.get(FIELD)
      if (spent !== undefined) oldest = Math.min(oldest ?? Infinity, spent)
    }
  }
  return oldest
}

function render({ name, ages, secretWrites, bytes, before, after }: Phase): string {
  const seconds = (after.atMs - before.atMs) / 1_000
  const rate = (of: (reading: Reading) => number): number => (of(after) - of(before)) / seconds
  const sorted = ages.toSorted((a, b) => a - b)
  const age = (part: number): string => (sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(1)
  return [
    `${name}, ${seconds.toFixed(0)} s:`,
    name.startsWith('every') ? `  age of the oldest durable spend: median ${age(0.5)} s, worst ${age(1)} s` : '',
    `  spend Secrets: ${(secretWrites / seconds).toFixed(2)} writes/s, largest ${(bytes / 1024).toFixed(0)} KiB`,
    `  Redis: ${rate((one) => one.redisCalls).toFixed(0)} calls of the operator/s, ${rate((one) => one.reads).toFixed(0)} reads of budgets/s, CPU ${(rate((one) => one.redisCpuMs) / 10).toFixed(1)} % of a core (the load included)`,
    `  operator: CPU ${(rate((one) => one.operatorCpuMs) / 10).toFixed(1)} % of a core, ${rate((one) => one.statuses).toFixed(1)} patches/s (statuses)`,
  ]
    .filter((text) => text !== '')
    .join('\n')
}

async function main({ ip, folder }: Inside, keys: number, seconds: number): Promise<number> {
  const missing = missingControlPlane()
  if (missing !== undefined) return skipped(missing)
  const machine = describeMachine()
  say(
    `spend: ${machine.date}, commit ${machine.commit}, ${machine.cpu}, ${machine.cores} cores, load average ${machine.loadAverage.toFixed(2)}`,
  )
  const site = { ip, folder, modelServer: { url: `http://${ip}:9`, port: 9 } }
  const env = { ...OPERATOR_ENV, MAX_API_KEYS_PER_NAMESPACE: '1000000' }
  await withStack(site, { gateways: 0, operatorEnv: env }, async (stack) => {
    const bench = new SpendBench(stack)
    const started = performance.now()
    await bench.issue(keys)
    say(`${keys} keys with a budget after ${((performance.now() - started) / 1_000).toFixed(0)} s`)
    say(render(await bench.phase('every key spends each second', seconds, true)))
    say(render(await bench.phase('no key spends', seconds / 2, false)))
    say(`all budgets seeded ${(await bench.wipe()).toFixed(1)} s after FLUSHALL; operator ${bench.operatorMib.toFixed(0)} MiB`)
  })
  return 0
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const [keys = 10_000, seconds = 60] = process.argv.slice(2).map(Number)
process.exitCode = await runInside({ script: import.meta.filename, makesLoad: false, run: (inside) => main(inside, keys, seconds) })
