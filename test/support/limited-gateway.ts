/**
 * One gateway process whose windows of limits are not a minute: the same parts as the program, with a timing that no setting can change.
 *
 *   node limited-gateway.ts '<LimitedGatewayConfig as JSON>'
 */
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { Redis } from 'ioredis'
import { BodyReader } from '../../gateway/dialects/body-reader.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { bodyLimits } from '../../gateway/http/body-budget.ts'
import { createHealthApp } from '../../gateway/http/health.ts'
import { createGatewayServer } from '../../gateway/http/server.ts'
import type { Ledger } from '../../gateway/limits/ledger.ts'
import type { LedgerFacts } from '../../gateway/metrics.ts'
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { availableMemory } from '#platform/available-memory.ts'
import { systemClock } from '#platform/clock.ts'
import { runProgram, type Running } from '#platform/lifecycle.ts'
import { createLog, type Log } from '#platform/log.ts'
import type { LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import { settingsWith } from '../../gateway/config.ts'
import { MemoryUsage } from '../../standalone/memory-usage.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { writer } from './records.ts'
import { WitnessedLedger } from './witnessed-ledger.ts'

export interface LimitedGatewayConfig {
  readonly pod: string
  readonly port: number
  readonly metricsPort: number
  readonly redis: { readonly host: string; readonly port: number; readonly username: string; readonly password: string }
  readonly timing: LedgerTiming
  /** Processes that share the limits. */
  readonly live: number
  /** File with the `ProjectedRecord`s as JSON. */
  readonly records: string
  /** File for the admissions; undefined: they are not recorded. */
  readonly admissions?: string
}

export interface ProjectedRecord {
  readonly kind: RecordKind
  readonly id: string
  readonly text: string
}

const HOST = '127.0.0.1'
const MAX_BODY_BYTES = 2 ** 20

await runProgram('limited-gateway', async (use) => {
  const config = JSON.parse(process.argv[2] ?? '') as LimitedGatewayConfig // written by the process that started this one
  const logging = createLog(config.pod, 'info')
  use(logging)
  return await start(config, logging.log)
})

async function start(config: LimitedGatewayConfig, log: Log): Promise<Running> {
  const redis = await connect(config.redis)
  const process = randomBytes(6).toString('base64url')
  const gateway = new Gateway({
    process,
    settings: settingsWith({ podName: config.pod, coldStart: 'RequireRedis', accessLog: 'errors', maxBodyBytes: MAX_BODY_BYTES }),
    source: await projectionOf(config),
    clock: systemClock,
    log,
    version: 'test',
    bodyLimits: bodyLimits(availableMemory()),
    bodyReader: new BodyReader({ log, clock: systemClock, maxBodyBytes: MAX_BODY_BYTES }),
    ledger: ledgerOf(config, process, redis, log),
    usage: new MemoryUsage(() => systemClock.now()),
    allowLoopback: true,
  })
  const api = createGatewayServer(gateway.app, gateway.errors)
  const health = createServer(createHealthApp(gateway.health))
  await Promise.all([once(api.listen(config.port, HOST), 'listening'), once(health.listen(config.metricsPort, HOST), 'listening')])
  await gateway.start()
  const stop = async (): Promise<void> => {
    await gateway.drain(0)
    await gateway.stop()
    for (const server of [api, health]) server.close().closeAllConnections()
    redis.disconnect()
  }
  return { stop, failed: gateway.follower.failed }
}

/** A client that fails fast and never sends a command twice, as the ledger expects. */
async function connect(settings: LimitedGatewayConfig['redis']): Promise<Redis> {
  const redis = new Redis({
    ...settings,
    protocol: 2,
    disableClientInfo: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 1_000,
  })
  redis.on('error', () => undefined) // calls reject by themselves
  await once(redis, 'ready')
  return redis
}

async function projectionOf({ records }: LimitedGatewayConfig): Promise<MemoryProjection> {
  const projection = new MemoryProjection()
  const known = JSON.parse(readFileSync(records, 'utf8')) as readonly ProjectedRecord[] // written by the process that started this one
  await projection.rebuild(
    writer(),
    'lab',
    1,
    known.map((record) => ({ op: 'put', ...record })),
  )
  return projection
}

function ledgerOf({ timing, live, admissions }: LimitedGatewayConfig, process: string, redis: Redis, log: Log): Ledger & LedgerFacts {
  const ledger = new LeaseLedger({
    store: new RedisLedgerStore(redis, 'hg', timing),
    clock: systemClock,
    process,
    live: () => live,
    timing,
    onRefused: (error) => log.error({ error: error.message }, 'ledger'),
  })
  return admissions === undefined ? ledger : new WitnessedLedger(ledger, admissions, process)
}
