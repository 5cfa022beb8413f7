/**
 * The ledger of one gateway process with many subjects, in a process without other work, so that its heap shows their memory.
 *
 *   node --expose-gc subjects-process.ts '<SubjectsConfig as JSON>'       prints a SubjectsResult as JSON
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import type { LimitSubject, Need, SettledUsage } from '../../gateway/limits/ledger.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { systemClock } from '#platform/clock.ts'

export interface SubjectsConfig {
  readonly redis: { readonly host: string; readonly port: number; readonly username: string; readonly password: string }
  readonly uids: string
  readonly subjects: number
}

export interface SubjectsResult {
  readonly held: number
  readonly bytesPerSubject: number
  readonly seconds: number
}

/** As long as the name of a process in a pod. */
const PROCESS = 'headgate-gateway-6b7f9c9d5c-x2x4k/Ab3dE6gH'
const AT_ONCE = 50
const RETRY_MS = 100
/** The ledger forgets demand after 10 s, and idle subjects become small within 5 to 8 s more, ms. */
const SETTLE_MS = 20_000

const config = JSON.parse(process.argv[2] ?? '') as SubjectsConfig // written by subjects.ts
const redis = new Redis({ ...config.redis, protocol: 2, disableClientInfo: true, enableOfflineQueue: true })
const store = new RedisLedgerStore(redis, 'hg')
const ledger = new LeaseLedger({ store, clock: systemClock, process: PROCESS, live: () => 2 })
const subjects = Array.from({ length: config.subjects }, (_, at) => subjectOf(at))
const need: Need = { tokens: 1_200, holdByUnit: { Currency: 900, Tokens: 1_200 } }
const used: SettledUsage = { inputTokens: 300, outputTokens: 64, costMicros: 100 }

function subjectOf(at: number): LimitSubject {
  const month = {
    name: 'monthly',
    unit: 'Currency',
    window: 'Month',
    timeZone: 'Europe/Berlin',
    amount: 90_000_000,
    onExceeded: 'Block',
  } as const
  return {
    uid: Buffer.from(`${config.uids}${at}`).toString(), // in one piece, as a parsed record has it
    whose: 'key',
    limits: { requestsPerMinute: 60, tokensPerMinute: 100_000 },
    budgets: [month],
    onStoreUnavailable: 'FailClosed',
  }
}

async function use(subject: LimitSubject): Promise<void> {
  for (;;) {
    const verdict = await ledger.reserve([subject], need)
    if (verdict.outcome === 'held') return ledger.settle(verdict, used)
    await sleep(RETRY_MS) // this process was too busy to read the answer of Redis in time
  }
}

function heapBytes(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const before = heapBytes()
const startedAt = performance.now()
for (let from = 0; from < subjects.length; from += AT_ONCE) await Promise.all(subjects.slice(from, from + AT_ONCE).map(use))
const seconds = (performance.now() - startedAt) / 1_000
await sleep(SETTLE_MS)
const result: SubjectsResult = { held: ledger.stats.subjects, bytesPerSubject: (heapBytes() - before) / subjects.length, seconds }
process.stdout.write(`${JSON.stringify(result)}\n`)
process.exit(0) // the keys must stay as they are
