/** One gateway with 10,000 keys of each kind, a Redis, and two instant mocks, to measure the cost of limits. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import type { ModelPricing } from '#contract/records/model-record.ts'
import { freePorts } from '../support/free-port.ts'
import { imageFlags } from '../support/image-flags.ts'
import { LedgerRedis } from '../support/ledger-redis.ts'
import type { LimitedGatewayConfig, ProjectedRecord } from '../support/limited-gateway.ts'
import { ManagedProcess } from '../support/managed-process.ts'
import { issuedKey, modelText, recordText } from '../support/records.ts'
import { waitFor } from '../support/wait-for.ts'
import { CONTENDER_CORE, LOAD_CORE } from './contenders.ts'
import { chatAnswer, chatBody, PLAIN_MODEL, STREAM_MODEL } from './fixtures.ts'
import { mockConfig } from './nginx-config.ts'

/** Kinds of keys by their limits. `refused`: one request a minute. */
export type KeyKind = 'bare' | 'limited' | 'refused'
/** Kinds of request bodies. `dear`: a request holds more than a process may hold ahead. */
export type BodyKind = 'plain' | 'dear' | 'stream'

/** The measured parts. */
export interface LimitedBench {
  readonly url: string
  readonly pid: number
  /** Events that the streaming mock has written so far. */
  eventsWritten(): Promise<number>
  /** Calls of the ledger's function library in Redis so far. */
  storeCalls(): Promise<number>
  /** Writes the Credentials of the first `count` keys of this kind into a file. @returns its path */
  keysFile(kind: KeyKind, count: number): string
  bodyFile(kind: BodyKind): string
  stop(): Promise<void>
}

const HOST = '127.0.0.1'
export const LOADED_KEYS = 10_000
const BODY_BYTES = 1_500
const DEAR_MODEL = 'bench-dear'
const MANY = 1_000_000_000
/** Micro-units for a million tokens: 0.1 of the currency, and 1,000. */
const PRICES: Readonly<Record<'cheap' | 'dear', number>> = { cheap: 100_000, dear: 1_000_000_000 }

const LIMITED: Pick<KeyRecord, 'limits' | 'budgets'> = {
  limits: { requestsPerMinute: MANY, tokensPerMinute: 1_000 * MANY },
  budgets: [{ name: 'monthly', unit: 'Currency', window: 'Month', timeZone: 'UTC', amount: 900_000 * MANY, onExceeded: 'Block' }],
}
const LIMITS: Readonly<Record<KeyKind, Pick<KeyRecord, 'limits' | 'budgets'>>> = {
  bare: {},
  limited: LIMITED,
  refused: { limits: { requestsPerMinute: 1 } },
}

/** @param folder for files and logs */
export async function startLimitedBench(folder: string): Promise<LimitedBench> {
  mkdirSync(folder, { recursive: true })
  const stops: (() => Promise<unknown>)[] = []
  const stop = async (): Promise<void> => {
    for (const one of stops.splice(0).reverse()) await one()
  }
  try {
    return await start(folder, stops, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

async function start(folder: string, stops: (() => Promise<unknown>)[], stop: () => Promise<void>): Promise<LimitedBench> {
  const run = async (name: string, core: number, argv: readonly string[]): Promise<ManagedProcess> => {
    const env = { NODE_ENV: 'production' }
    const started = new ManagedProcess({ name, argv: ['taskset', '-c', String(core), ...argv], env, logFile: join(folder, `${name}.log`) })
    await started.start()
    stops.push(() => started.stop())
    return started
  }
  const [plain = 0, stream = 0, port = 0, metricsPort = 0] = await freePorts(4)
  writeFileSync(join(folder, 'nginx.conf'), mockConfig(`${HOST}:${plain}`, chatAnswer()))
  await run('mock', LOAD_CORE, ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')])
  await run('stream-mock', LOAD_CORE, [process.execPath, join(import.meta.dirname, 'stream-mock.ts'), HOST, String(stream)])
  const redis = await LedgerRedis.start(LEDGER_TIMING, false)
  stops.push(() => redis.stop())
  const keys = issueKeys()
  for (const { record } of keys.limited) await redis.seed(record.uid, 'seed-1')
  const records = join(folder, 'records.json')
  writeFileSync(records, JSON.stringify(recordsOf(keys, { plain, stream })), { mode: 0o600 })
  const config: LimitedGatewayConfig = {
    ...{ pod: 'bench', port, metricsPort, redis: redis.credentials, timing: LEDGER_TIMING, live: 1, records },
  }
  const program = [process.execPath, ...imageFlags('gateway'), join(import.meta.dirname, '../support/limited-gateway.ts')]
  const gateway = await run('gateway', CONTENDER_CORE, [...program, JSON.stringify(config)])
  await waitFor('the gateway to be ready', async () => (await fetch(`http://${HOST}:${metricsPort}/readyz`)).ok)
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content, { mode: 0o600 })
    return join(folder, name)
  }
  return {
    url: `http://${HOST}:${port}/v1/chat/completions`,
    pid: gateway.pid,
    eventsWritten: async () => Number(await (await fetch(`http://${HOST}:${stream}/events`)).text()),
    storeCalls: async () => Number(/^cmdstat_fcall:calls=(\d+)/m.exec(await redis.part.admin.info('commandstats'))?.[1] ?? 0),
    keysFile: (kind, count) =>
      file(
        `keys-${kind}-${count}`,
        keys[kind]
          .slice(0, count)
          .map(({ credential }) => credential)
          .join('\n'),
      ),
    bodyFile: (kind) =>
      file(`body-${kind}.json`, chatBody(BODY_BYTES, kind === 'stream').replace(PLAIN_MODEL, kind === 'dear' ? DEAR_MODEL : PLAIN_MODEL)),
    stop,
  }
}

type Keys = Readonly<Record<KeyKind, ReadonlyArray<ReturnType<typeof issuedKey>>>>

function issueKeys(): Keys {
  const issue = (kind: KeyKind): Keys[KeyKind] =>
    Array.from({ length: LOADED_KEYS }, (_, i) => issuedKey(`${kind}-${i}`, { namespace: 'shop', models: [['*']], ...LIMITS[kind] }))
  return { bare: issue('bare'), limited: issue('limited'), refused: issue('refused') }
}

function recordsOf(keys: Keys, ports: { readonly plain: number; readonly stream: number }): ProjectedRecord[] {
  const all = Object.values(keys).flat()
  return [
    ...all.map(({ record }) => ({ kind: 'key' as const, id: record.uid, text: recordText(record) })),
    modelOf(PLAIN_MODEL, ports.plain, PRICES.cheap),
    modelOf(DEAR_MODEL, ports.plain, PRICES.dear),
    modelOf(STREAM_MODEL, ports.stream, PRICES.cheap),
  ]
}

function modelOf(name: string, port: number, price: number): ProjectedRecord {
  const pricing: ModelPricing = { inputPerMillion: price, outputPerMillion: price, cachedInputPerMillion: price }
  const server = {
    ...{ name: 'mock', endpoints: [], service: null, url: `http://${HOST}:${port}`, upstreamModel: name, weight: 1 },
    ...{ messages: 'Native' as const, credentialSum: null, formerCredentialSum: null },
  }
  return { kind: 'model', id: name, text: modelText(name, { backends: [server], pricing }) }
}
