/** Several gateway processes with scaled windows, one Redis and a stub model on this machine; and load of known rate on them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AccountRecord, encodeAccountRecord } from '#contract/records/account-record.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { encodePlanRecord, type PlanRecord } from '#contract/records/plan-record.ts'
import type { LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { ModelPricing, ModelRecord } from '#contract/records/model-record.ts'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { checkedStreamsEnv } from './checked-streams.ts'
import { freePorts } from './free-port.ts'
import { LedgerRedis, type RedisClock } from './ledger-redis.ts'
import type { LimitedGatewayConfig, ProjectedRecord } from './limited-gateway.ts'
import { ManagedProcess } from './managed-process.ts'
import { backendRecord, issuedKey, modelText, recordText } from './records.ts'
import { waitFor } from './wait-for.ts'
import { type Admission, readAdmissions } from './witnessed-ledger.ts'

/** What the keys of an account share. */
export type SharedLimits = Pick<AccountRecord, 'limits' | 'budgets'>

export interface LimitsLabOptions {
  readonly timing: LedgerTiming
  /** Error of the wall clock of each process, ms; as many processes are started. */
  readonly clockShiftsMs: readonly number[]
  /** Limits by uid of the key. Budgets are seeded as never spent. */
  readonly keys: Readonly<Record<string, Pick<KeyRecord, 'limits' | 'budgets' | 'account'>>>
  /** What the keys of an account share, by its uid, which is its name in the ledger too. */
  readonly accounts?: Readonly<Record<string, SharedLimits>>
  /** The model server, which the lab closes. Default: a stub that records nothing. */
  readonly model?: StubModel
  readonly modelRecord?: Partial<ModelRecord>
  /** Default: the clock of Redis cannot be moved. */
  readonly clock?: RedisClock
}

/** Load of one key; `perSecond` is over all processes that run. */
export interface LimitedLoad {
  readonly uid: string
  readonly perSecond: number
  readonly call?: LimitedCallOptions
}

export interface LimitedCallOptions {
  readonly maxTokens?: number | undefined
  /** For the stub model: `examples/stub-model/stub-directives.ts`. */
  readonly directives?: string
  readonly stream?: boolean
  readonly signal?: AbortSignal
}

/** Answers by status; `none` for calls without one. */
export type Statuses = Record<string, number>

/** Micro-units for each token of the model, in and out. */
export const TOKEN_PRICE = 1_000
/** Output of a request that names no bound. */
export const MODEL_OUTPUT = 16

const PRICE_PER_MILLION = TOKEN_PRICE * 1_000_000
const PRICING: ModelPricing = {
  inputPerMillion: PRICE_PER_MILLION,
  outputPerMillion: PRICE_PER_MILLION,
  cachedInputPerMillion: PRICE_PER_MILLION,
}
const MODEL = 'stub'
/** Forwarded by gateways; the stub looks for directives in it, and finds none in a uid. */
export const UID_HEADER = 'x-session-id'
/** The plan of all accounts. */
export const PLAN: PlanRecord = { kind: 'plan', version: 1, revision: 0, uid: 'plan', name: 'plan', generation: 1, models: ['*'] }
/** A key that only the warm-up uses. */
const WARM = 'warm'
const WARM_LIMITS = { limits: { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000 } }
const BEAT_MS = 20
/** Maximum number of running calls of one load; more calls would only queue on a slow machine. */
const MAX_UNDER_WAY = 1_000

interface LimitedProcess {
  readonly process: ManagedProcess
  readonly url: string
  readonly healthURL: string
  readonly admissions: string
}

/** The answers of the model server wait while this gate is closed. */
class AnswerGate {
  #opened: PromiseWithResolvers<void> | undefined

  get opened(): Promise<void> | undefined {
    return this.#opened?.promise
  }

  close(): void {
    this.#opened = Promise.withResolvers()
  }

  open(): void {
    this.#opened?.resolve()
    this.#opened = undefined
  }
}

interface Stream {
  readonly load: LimitedLoad
  sent: number
  readonly statuses: Statuses
}

interface LabParts {
  readonly redis: LedgerRedis
  readonly gateways: readonly LimitedProcess[]
  readonly answers: AnswerGate
  readonly folder: string
  readonly model: StubModel
  readonly credentials: ReadonlyMap<string, string>
}

export class LimitsLab {
  readonly redis: LedgerRedis
  readonly gateways: readonly LimitedProcess[]
  readonly #folder: string
  readonly #model: StubModel
  readonly #answers: AnswerGate
  readonly #credentials: ReadonlyMap<string, string>

  private constructor(parts: LabParts) {
    this.redis = parts.redis
    this.gateways = parts.gateways
    this.#answers = parts.answers
    this.#folder = parts.folder
    this.#model = parts.model
    this.#credentials = parts.credentials
  }

  static async start({ timing, clockShiftsMs, keys, accounts = {}, clock = 'own', ...options }: LimitsLabOptions): Promise<LimitsLab> {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-limits-'))
    const answers = new AnswerGate()
    const stub = options.model ?? startStubModel({ onRequest: () => answers.opened })
    const [redis, model] = await Promise.all([LedgerRedis.start(timing, clock), stub])
    const issued = Object.entries({ ...keys, [WARM]: WARM_LIMITS }).map(([uid, limited]) => issuedKey(uid, limited))
    const known: readonly ProjectedRecord[] = [
      ...issued.map(({ record }) => ({ kind: 'key' as const, id: record.uid, text: recordText(record) })),
      { kind: 'plan', id: PLAN.uid, text: encodePlanRecord(PLAN) },
      ...Object.entries(accounts).map(([uid, shared]) => ({ kind: 'account' as const, id: uid, text: accountText(uid, shared) })),
      { kind: 'model', id: MODEL, text: modelOf(model, options.modelRecord) },
    ]
    const records = join(folder, 'records.json')
    writeFileSync(records, JSON.stringify(known), { mode: 0o600 })
    for (const { record } of issued) if (record.budgets) await redis.seed(record.uid, 'seed-1')
    for (const uid of Object.keys(accounts)) await redis.seed(uid, 'seed-1')
    const ports = await freePorts(2 * clockShiftsMs.length)
    const gateways = clockShiftsMs.map((shiftMs, at) => {
      const config = {
        ...{ pod: `gateway-${at + 1}`, port: ports[2 * at] ?? 0, metricsPort: ports[2 * at + 1] ?? 0 },
        ...{ redis: redis.credentials, timing, live: clockShiftsMs.length, records },
        admissions: join(folder, `gateway-${at + 1}.admissions`),
      }
      return limitedProcess(config, folder, shiftMs)
    })
    const credentials = new Map(issued.map(({ credential, record }) => [record.uid, credential] as const))
    const lab = new LimitsLab({ redis, gateways, answers, folder, model, credentials })
    try {
      await Promise.all(gateways.map((gateway) => lab.launch(gateway)))
      await lab.#warmUp()
      return lab
    } catch (error) {
      await lab.stop()
      throw error
    }
  }

  async launch({ process, healthURL }: LimitedProcess): Promise<void> {
    await process.start()
    await waitFor(`${process.spec.name} to be ready`, async () => {
      if (!process.running) throw new Error(process.log().slice(-2_000))
      return (await fetch(`${healthURL}/readyz`)).ok
    })
  }

  async stop(): Promise<void> {
    await Promise.all(this.gateways.map(({ process }) => process.stop()))
    await Promise.all([this.redis.stop(), this.#model.close()])
    rmSync(this.#folder, { recursive: true })
  }

  /** One call, to its end. @returns the status; rejects when no answer came */
  async call({ url }: Pick<LimitedProcess, 'url'>, uid: string, options: LimitedCallOptions = {}): Promise<number> {
    const answer = await this.open({ url }, uid, options)
    await answer.arrayBuffer()
    return answer.status
  }

  /**
   * One call, to its end. The call is repeated after 503, as clients do: on a busy machine Redis may take longer than a gateway waits.
   * @returns a status other than 503
   */
  async decided(gateway: Pick<LimitedProcess, 'url'>, uid: string, options: LimitedCallOptions = {}): Promise<number> {
    return waitFor('an answer other than 503', async () => {
      const status = await this.call(gateway, uid, options)
      return status !== 503 && status
    })
  }

  /**
   * Calls at once, in turn to all processes. No answer begins before all calls are decided, since a late call would find the room of an early one.
   * @param uids of the key of each call @returns the statuses
   */
  async race(uids: readonly string[], options: LimitedCallOptions): Promise<number[]> {
    const before = this.admissions().length
    let refused = 0
    this.#answers.close()
    const calls = uids.map(async (uid, at) => {
      const gateway = this.#inTurn(at)
      if (!gateway) throw new Error('no gateway runs')
      const status = await this.decided(gateway, uid, options)
      if (status !== 200) refused += 1
      return status
    })
    try {
      await waitFor('all calls to be decided', () => this.admissions().length - before + refused >= uids.length)
    } finally {
      this.#answers.open()
    }
    return Promise.all(calls)
  }

  /** One call, until its answer begins. */
  async open({ url }: Pick<LimitedProcess, 'url'>, uid: string, options: LimitedCallOptions = {}): Promise<Response> {
    const { maxTokens, directives = 'words=4', stream = false, signal } = options
    const content = `Say something. stub:${directives}`
    const body = bodyWith({ stream, max_tokens: maxTokens, messages: [{ role: 'user', content }] })
    return await this.post({ url }, uid, { body, ...(signal ? { signal } : {}) })
  }

  /** One call with this body, until its answer begins. The model server sees the uid of the key as a header. */
  async post({ url }: Pick<LimitedProcess, 'url'>, uid: string, call: Pick<RequestInit, 'body' | 'signal'>): Promise<Response> {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${this.#credentials.get(uid)}`, [UID_HEADER]: uid }
    return await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, ...call })
  }

  /** Calls at these rates, in turn to the processes that run, whatever the answers are. @returns the answers of each load */
  async load(loads: readonly LimitedLoad[], seconds: number): Promise<Statuses[]> {
    const underWay = new Set<Promise<void>>()
    const streams = loads.map((load): Stream => ({ load, sent: 0, statuses: {} }))
    const startedAt = performance.now()
    let elapsed = 0
    while (elapsed < seconds * 1_000) {
      for (const stream of streams) this.#catchUp(stream, Math.floor((elapsed / 1_000) * stream.load.perSecond), underWay)
      await sleep(BEAT_MS)
      elapsed = performance.now() - startedAt
    }
    await Promise.all(underWay)
    return streams.map(({ statuses }) => statuses)
  }

  admissions(): Admission[] {
    return readAdmissions(this.gateways.map(({ admissions }) => admissions))
  }

  async storeCalls(): Promise<number> {
    const info = await this.redis.part.admin.info('commandstats')
    return Number(/^cmdstat_fcall:calls=(\d+)/m.exec(info)?.[1] ?? 0)
  }

  /** Warms up the processes: code that has never run is slow, and to four such processes on two cores the store seems slow. */
  async #warmUp(): Promise<void> {
    await waitFor('the processes to be warm', async () => {
      const [statuses = {}] = await this.load([{ uid: WARM, perSecond: 200 }], 1)
      return Object.keys(statuses).every((status) => status === '200')
    })
  }

  #catchUp(stream: Stream, due: number, underWay: Set<Promise<void>>): void {
    for (; stream.sent < due; stream.sent += 1) if (underWay.size < MAX_UNDER_WAY) this.#send(stream, underWay)
  }

  #inTurn(turn: number): LimitedProcess | undefined {
    const running = this.gateways.filter(({ process }) => process.running)
    return running[turn % running.length]
  }

  #send({ load, sent, statuses }: Stream, underWay: Set<Promise<void>>): void {
    const gateway = this.#inTurn(sent)
    if (!gateway) return
    const count = (status: string): void => void (statuses[status] = (statuses[status] ?? 0) + 1)
    const sending = this.call(gateway, load.uid, { maxTokens: 12, ...load.call })
      .then(
        (status) => count(String(status)),
        () => count('none'),
      )
      .then(() => void underWay.delete(sending))
    underWay.add(sending)
  }
}

/** The record of an Active account on the plan `PLAN`. */
export function accountText(uid: string, shared: SharedLimits): string {
  const own = {
    kind: 'account',
    version: 1,
    revision: 0,
    uid,
    name: uid,
    generation: 1,
    state: 'Active',
    plan: PLAN.uid,
    ledger: uid,
  } as const
  return encodeAccountRecord({ ...own, ...shared })
}

function limitedProcess(config: LimitedGatewayConfig & { readonly admissions: string }, folder: string, shiftMs: number): LimitedProcess {
  const here = import.meta.dirname
  const preload = ['--import', join(here, 'shifted-clock.ts')]
  const process = new ManagedProcess({
    name: config.pod,
    argv: [globalThis.process.execPath, ...preload, join(here, 'limited-gateway.ts'), JSON.stringify(config)],
    env: { ...checkedStreamsEnv(), CLOCK_SHIFT_MS: String(shiftMs) },
    logFile: join(folder, `${config.pod}.log`),
  })
  const url = (port: number): string => `http://127.0.0.1:${port}`
  return { process, url: url(config.port), healthURL: url(config.metricsPort), admissions: config.admissions }
}

/** The text of a request to the model of the lab. */
export function bodyWith(fields: object): string {
  return JSON.stringify({ model: MODEL, ...fields })
}

function modelOf({ url }: StubModel, change: Partial<ModelRecord> = {}): string {
  const server = backendRecord({ name: 'stub', url, upstreamModel: MODEL })
  return modelText(MODEL, { backends: [server], pricing: PRICING, maxOutputTokens: MODEL_OUTPUT, ...change })
}
