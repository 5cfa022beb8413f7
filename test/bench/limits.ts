/** The cost of limits: one gateway serves, in turn, keys with limits on requests and tokens and a budget, and keys without limits. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { LedgerRedis } from '../support/ledger-redis.ts'
import { comparing, type Comparison, runLoad } from './compare.ts'
import { KEYS, startRig } from './gateways.ts'
import { limitAttacksPart } from './limit-attacks.ts'
import { type BenchSite, type Bound, breaks, type Part, type PartResult, shown } from './part.ts'
import type { SubjectsConfig, SubjectsResult } from './subjects-process.ts'

const HOT_KEYS: Omit<Comparison, 'name' | 'about' | 'bounds'> = {
  ...{ model: 'plain', bodyBytes: 1_500, connections: 32, keys: 50 },
  ...{ measured: { of: 'gateway', keys: 'limited' }, control: { of: 'gateway', keys: 'bare' } },
}
/** When every request asks Redis. */
const ASKING = { cpu: { must: 1.5 }, p99: { must: 1.5 }, calls: { must: 1.1 } }
/** Settlements of thousands of keys go on after the load, ms. */
const AFTERMATH_MS = 16_000

const REDIS_BYTES: Bound = { must: 4_096 }
const PROCESS_BYTES: Bound = { must: 1_536 }
/** With a number at the end, as long as a uid. */
const UIDS = '1d6f3a52-9f0e-4c55-8f3b-'
const SEEDED_AT_ONCE = 500

export const LIMIT_PARTS: readonly Part[] = [
  comparing({
    ...HOT_KEYS,
    name: 'hot-keys',
    about: 'requests, tokens and a budget, 50 of 10,000 keys: with limits ÷ without',
    bounds: { cpu: { must: 1.1 } },
  }),
  comparing({
    ...HOT_KEYS,
    ...{ name: 'hot-keys-sse', about: 'the same, per streamed event', model: 'stream', connections: 64, bounds: { cpu: { must: 1.1 } } },
  }),
  comparing({ ...HOT_KEYS, name: 'all-keys', about: 'all of 10,000 keys in turn', keys: KEYS, bounds: ASKING, pauseMs: AFTERMATH_MS }),
  comparing({
    ...HOT_KEYS,
    name: 'dear-calls',
    about: 'each call holds more than a process may hold ahead',
    model: 'dear',
    bounds: ASKING,
  }),
  comparing({
    ...HOT_KEYS,
    ...{ name: '429-c32', about: 'a refusal by a limit ÷ a forwarded request with limits' },
    ...{ measured: { of: 'gateway', keys: 'refused' }, control: { of: 'gateway', keys: 'limited' } },
    bounds: { cpu: { must: 0.6 }, calls: { must: 0.01 } },
  }),
  comparing({
    ...HOT_KEYS,
    ...{ name: 'shared-limits', about: 'limits of the key and of one of ten accounts ÷ limits of the key alone' },
    ...{ measured: { of: 'gateway', keys: 'shared' }, control: { of: 'gateway', keys: 'limited' } },
    bounds: { cpu: { must: 1.15 }, calls: { must: 0.1 } },
  }),
  { name: 'subjects', needs: 'redis', run: subjectsPart },
  { name: 'throttled', needs: 'load', run: throttledPart },
  { name: 'limit-attacks', needs: 'redis', run: limitAttacksPart },
]

/** Half a core: the kernel stops the gateway for half of each period. */
const CGROUP = `/sys/fs/cgroup/cpu/headgate-throttled-${process.pid}`
const QUOTA = { cfs_period_us: 100_000, cfs_quota_us: 50_000 }
const THROTTLED_CALLS = 60_000

/** A busy gateway with half a core, and a Redis that is well: no call of a key with limits may get 503. */
async function throttledPart(site: BenchSite): Promise<PartResult> {
  try {
    mkdirSync(CGROUP, { recursive: true })
  } catch {
    return { lines: ['SKIPPED: no CPU cgroup can be made here (cgroup v1, root)'], isMissed: false, data: null }
  }
  const rig = await startRig(site, 'throttled')
  try {
    const { gateway } = rig
    for (const [name, micros] of Object.entries(QUOTA)) writeFileSync(join(CGROUP, `cpu.${name}`), String(micros))
    writeFileSync(join(CGROUP, 'cgroup.procs'), String(gateway.pid))
    const load = { url: gateway.url('plain'), bodyFile: rig.bodyFile('plain', 1_500), keysFile: gateway.keysFile('limited', 50) }
    const seen = { requests: 0, refused: 0, broken: 0 }
    while (seen.requests < (site.isQuick ? 2_000 : THROTTLED_CALLS)) {
      const { requests, refused, broken } = await runLoad({ ...load, connections: 64, seconds: 5 })
      seen.requests += requests
      seen.refused += refused
      seen.broken += broken
    }
    const periods = readFileSync(join(CGROUP, 'cpu.stat'), 'utf8').trim().replaceAll('\n', ', ')
    const lines = [
      `${seen.requests} calls of 50 keys with limits to a gateway with half a core (${periods})`,
      `  refused ${shown(seen.refused, { must: 0 }, '', 0)}; without an answer ${shown(seen.broken, { must: 0 }, '', 0)}`,
    ]
    return { lines, isMissed: seen.refused + seen.broken > 0, data: seen }
  } finally {
    await rig.stop()
    rmdirSync(CGROUP)
  }
}

/** Memory of many keys with limits that are all used within a minute, in Redis and in a gateway process. */
async function subjectsPart({ isQuick }: BenchSite): Promise<PartResult> {
  const subjects = isQuick ? 2_000 : 100_000
  const redis = await LedgerRedis.start(LEDGER_TIMING, 'own')
  try {
    const empty = await usedMemory(redis)
    const uids = Array.from({ length: subjects }, (_, at) => `${UIDS}${at}`)
    for (let from = 0; from < subjects; from += SEEDED_AT_ONCE) {
      await Promise.all(uids.slice(from, from + SEEDED_AT_ONCE).map((uid) => redis.seed(uid, 'seed-of-an-installation')))
    }
    const config: SubjectsConfig = { redis: redis.credentials, uids: UIDS, subjects }
    const program = join(import.meta.dirname, 'subjects-process.ts')
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', program, JSON.stringify(config)])
    const { held, bytesPerSubject, seconds } = JSON.parse(stdout) as SubjectsResult // printed by that program
    const inRedis = ((await usedMemory(redis)) - empty) / subjects
    const lines = [
      `${subjects} keys with requests, tokens and a budget, each used once within ${seconds.toFixed(0)} s; ${held} of them used within the last minute when measured`,
      `  Redis: ${shown(inRedis, REDIS_BYTES, 'bytes', 0)}`,
      `  gateway process: ${shown(bytesPerSubject, PROCESS_BYTES, 'bytes', 0)}`,
    ]
    const isMissed = breaks(REDIS_BYTES, inRedis) || breaks(PROCESS_BYTES, bytesPerSubject)
    return { lines, isMissed, data: { held, inRedis, bytesPerSubject } }
  } finally {
    await redis.stop()
  }
}

async function usedMemory(redis: LedgerRedis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.part.admin.info('memory'))?.[1] ?? 0)
}
