/**
 * The cost of budgets in the operator, and the age of the durable spend: while every key spends each second and some other keys end, while no
 * key spends, and after Redis was emptied. The bench writes the time as the spend of each key, so the Secrets show how old their values are.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { budgetField } from '#contract/ledger/ledger-layout.ts'
import { ledgerKeys, settledSubjects } from '#contract/redis/redis-keys.ts'
import { durableSpend } from '../support/durable-bytes.ts'
import { atOnce } from '../support/at-once.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'
import { clonesOf } from './gateways.ts'
import { keyManifest, keyNames, serverReading, untilIdle, WIDTH, withControlPlane, withStack } from './many-keys.ts'
import { type BenchSite, type Bound, breaks, cpuMs, memoryMib, type PartResult, quantile, shown } from './part.ts'
import { Prober } from './prober.ts'
import { STILL_WORKS } from './storm.ts'

const FIELD = budgetField('life:Currency:Lifetime', 0)
const BUDGETS = [{ name: 'life', amount: '900000000', unit: 'Currency', window: 'Lifetime', onExceeded: 'Block' }]
const WARM_UP_MS = 20_000
const SPEND_EVERY_MS = 1_000
/** Decoding all Secrets takes processor time from the measured programs, ms. */
const AGE_EVERY_MS = 4_000
/** Keys whose spend is written in one round trip. */
const CHUNK = 500
/** Keys that are suspended and deleted in turn while all others spend. */
const PROBES = 20
/** How old durable spend may be, s. */
const AGE: Bound = { must: 10 }
/** Writes of Secrets per second. */
const SECRET_WRITES: Bound = { must: 4 }

interface Phase {
  readonly name: string
  /** Age of the oldest durable spend at each reading, s. */
  readonly ages: readonly number[]
  readonly writesPerSecond: number
  /** Percent of a core. */
  readonly operatorCpu: number
  readonly redisCpu: number
}

class SpendBench {
  readonly #stack: Stack
  readonly #uids: string[] = []
  readonly #startedMs = performance.now()

  constructor(stack: Stack) {
    this.#stack = stack
  }

  async issue(keys: number): Promise<void> {
    const { kube, namespaces } = this.#stack
    const [own = '', other = ''] = namespaces
    const create = async (key: { name: string; namespace: string }): Promise<string> =>
      (await kube.create(keyManifest(key, { budgets: BUDGETS }))).metadata.uid ?? ''
    await atOnce(keyNames('ended', PROBES, [other]), create, WIDTH)
    await atOnce(keyNames('key', keys, [own]), async (key) => this.#uids.push(await create(key)), WIDTH)
    await this.untilSeeded(600_000)
    await untilIdle(this.#stack.operator)
  }

  async untilSeeded(deadlineMs: number): Promise<void> {
    const isSeeded = async (): Promise<boolean> => {
      const pipeline = this.#stack.redis.admin.pipeline()
      for (const uid of this.#uids) pipeline.hexists(ledgerKeys('hg', uid).budget, 'seed')
      return ((await pipeline.exec()) ?? []).every(([, is]) => is === 1)
    }
    await waitFor('every budget to be seeded', isSeeded, { deadlineMs, everyMs: 500 })
  }

  async phase(name: string, seconds: number, spends: boolean): Promise<Phase> {
    await this.#work(WARM_UP_MS, spends)
    const before = await this.#reading()
    const ages = await this.#work(seconds * 1_000, spends)
    const after = await this.#reading()
    const rate = (of: keyof typeof before): number => ((after[of] - before[of]) * 1_000) / (after.atMs - before.atMs)
    return { name, ages, writesPerSecond: rate('secretWrites'), operatorCpu: rate('operatorCpuMs') / 10, redisCpu: rate('redisCpuMs') / 10 }
  }

  async endKeys(overMs: number): Promise<{ readonly times: readonly number[]; readonly admittedAgain: number }> {
    const prober = new Prober(this.#stack)
    const times: number[] = []
    try {
      for (const [at, key] of keyNames('ended', PROBES, [this.#stack.namespaces[1] ?? '']).entries()) {
        const { SERVICE_API_KEY: credential = '' } = await this.#stack.secret(key.name, key.namespace)
        times.push(await prober.end(key, credential, at % 2 === 0 ? 'suspend' : 'delete'))
        await sleep(overMs / PROBES)
      }
      return { times, admittedAgain: (await prober.close()).admittedAgain }
    } finally {
      await prober.stop()
    }
  }

  /** @returns s until every key has its spend again */
  async wipe(): Promise<number> {
    const started = performance.now()
    await this.#stack.redis.admin.flushall()
    await this.untilSeeded(120_000)
    return (performance.now() - started) / 1_000
  }

  async #work(ms: number, spends: boolean): Promise<number[]> {
    const end = performance.now() + ms
    const ages: number[] = []
    const repeat = async (everyMs: number, work: () => Promise<unknown>): Promise<void> => {
      while (performance.now() < end) {
        const round = performance.now()
        await work()
        await sleep(Math.max(0, everyMs - (performance.now() - round)))
      }
    }
    await Promise.all([
      repeat(SPEND_EVERY_MS, async () => spends && this.#spend()),
      repeat(AGE_EVERY_MS, async () => spends && ages.push(await this.#age())),
    ])
    return ages
  }

  async #spend(): Promise<void> {
    for (let at = 0; at < this.#uids.length; at += CHUNK) {
      const some = this.#uids.slice(at, at + CHUNK)
      const pipeline = this.#stack.redis.admin.pipeline()
      const spent = String(Math.round(performance.now() - this.#startedMs) + 1)
      for (const uid of some) pipeline.hset(ledgerKeys('hg', uid).budget, `${FIELD}:s`, spent)
      pipeline.sadd(settledSubjects('hg'), ...some)
      await pipeline.exec()
      await sleep((SPEND_EVERY_MS * CHUNK) / this.#uids.length / 2)
    }
  }

  async #age(): Promise<number> {
    const readMs = performance.now() - this.#startedMs
    const entries = await durableSpend(this.#stack)
    return (readMs - Math.min(...this.#uids.map((uid) => entries.get(uid)?.spent.get(FIELD) ?? 0))) / 1_000
  }

  async #reading(): Promise<Readonly<Record<'atMs' | 'operatorCpuMs' | 'redisCpuMs' | 'secretWrites', number>>> {
    const { operator, redis, site } = this.#stack
    const { secretWrites } = await serverReading(site.plane)
    return { atMs: performance.now(), operatorCpuMs: cpuMs(operator.process.pid), redisCpuMs: cpuMs(redis.process.pid), secretWrites }
  }
}

export async function spendPart(site: BenchSite): Promise<PartResult> {
  const [keys, seconds] = site.isQuick ? [300, 10] : [10_000, 60]
  const [{ dist }] = clonesOf(site)
  const namespaces = ['spend-keys', 'spend-ended']
  const data = await withControlPlane(site, 'spend-plane', (plane) =>
    withStack(site, { plane, name: 'spend', dist, namespaces }, async (stack) => {
      const bench = new SpendBench(stack)
      await bench.issue(keys)
      site.say(`spend: ${keys} keys have a budget`)
      const [spending, ended] = await Promise.all([
        bench.phase('every key spends each second', seconds, true),
        sleep(WARM_UP_MS).then(() => bench.endKeys(seconds * 1_000)),
      ])
      const idle = await bench.phase('no key spends', seconds / 2, false)
      return { spending, idle, ended, seededSeconds: await bench.wipe(), operatorMib: memoryMib(stack.operator.process.pid).rss }
    }),
  )
  const { spending, idle, ended, seededSeconds, operatorMib } = data
  const [oldest, p99] = [Math.max(...spending.ages), quantile(ended.times, 0.99)]
  const lines = [
    `${keys} keys with a budget`,
    ...[spending, idle].map(phaseLine),
    `  age of the oldest durable spend: median ${quantile(spending.ages, 0.5).toFixed(1)} s, worst ${shown(oldest, AGE, 's')}`,
    `  ${PROBES} keys that end at the same time still work for p99 ${shown(p99, STILL_WORKS, 'ms', 0)}; admitted again: ${ended.admittedAgain}`,
    `  all budgets seeded ${seededSeconds.toFixed(1)} s after FLUSHALL; operator ${operatorMib.toFixed(0)} MiB`,
  ]
  const isMissed =
    [spending, idle].some(({ writesPerSecond }) => breaks(SECRET_WRITES, writesPerSecond)) ||
    breaks(AGE, oldest) ||
    breaks(STILL_WORKS, p99)
  return { lines, isMissed: isMissed || ended.admittedAgain > 0, data }
}

function phaseLine({ name, writesPerSecond, operatorCpu, redisCpu }: Phase): string {
  return `  ${name}: Secrets ${shown(writesPerSecond, SECRET_WRITES, 'writes/s', 2)}; operator ${operatorCpu.toFixed(1)} % of a core, Redis ${redisCpu.toFixed(1)} % (the load included)`
}
