/**
 * Gateway processes that count limits in a real Redis. Redis holds the data that an operator writes: the library of the ledger, keys and
 * models, and the seeds of budgets. Behind the gateways is the stub model.
 */
import { RedisConnection } from '#platform/redis-connection.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { budgetField, budgetID } from '#contract/ledger/ledger-layout.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import type { ModelRecord } from '#contract/records/model-record.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { encodePlanRecord } from '#contract/records/plan-record.ts'
import { ask, type Answer, callHeaders, type Question } from './ask.ts'
import type { Lab } from './lab.ts'
import { accountText, PLAN, type SharedLimits } from './limit-processes.ts'
import { Program } from './program.ts'
import { backendRecord, issuedKey, modelText, recordText, writer, type IssuedKey } from './records.ts'
import { redisSettings } from './redis-gateway.ts'
import type { RedisPart } from './redis-part.ts'
import { waitFor } from './wait-for.ts'

/** A millionth of a unit for each token of the prompt and of the answer. */
const PRICING = { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000, cachedInputPerMillion: 1_000_000 }
const LEDGER = ledgerFunctions('hg')

/** Wait of a call for Redis: on a busy machine Redis may need longer than the half second by default, and the call would get 503. */
export const PATIENT_MS = '5000'

const FREE = { inputPerMillion: 0, outputPerMillion: 0, cachedInputPerMillion: 0 }

/** Model with a price; `free` has the price 0, `unpriced` none, and `twice` a dead endpoint beside the good one. */
export const PRICED = 'priced'
/** A model with timeouts of one second: for the first byte, and for silence within an answer. */
export const IMPATIENT = 'impatient'
/** A model for calls whose server reports nothing. No other calls may be made: their reports would change the estimates of the next ones. */
export const UNREPORTED = 'unreported'

/** The answer of `/v1/key`. The values are at most a second old. */
export interface KeyView {
  readonly limits: ReadonlyArray<{ readonly limit: string; readonly left: number }>
  readonly budgets: ReadonlyArray<{ readonly used: string; readonly held: string; readonly left: string }>
}

type Env = Readonly<Record<string, string>>

export interface LimitedAnswersOptions {
  readonly gateways?: number
  /** For every gateway, or by its index. */
  readonly env?: Env | ((redis: RedisPart, index: number) => Env)
  /** Further arguments of the Redis server. */
  readonly redisArgs?: readonly string[]
  /** Further models, and what differs from a model without a price. */
  readonly models?: Readonly<Record<string, Partial<ModelRecord>>>
  /** Further models without a price, whose server speaks chat completions alone, and what differs. Messages for them are translated. */
  readonly chatModels?: Readonly<Record<string, Partial<ModelRecord>>>
  /** What the keys of an account share, by its uid. Its budgets are seeded as never spent. */
  readonly accounts?: Readonly<Record<string, SharedLimits>>
}

interface AnswersParts {
  readonly lab: Lab
  readonly redis: RedisPart
  readonly gateways: readonly Program[]
  readonly model: StubModel
  readonly options: LimitedAnswersOptions
}

/** Close it in `afterAll`. */
export class LimitedAnswers {
  readonly redis: RedisPart
  readonly gateways: readonly Program[]
  reached = 0
  /** Base URL of the stub model. */
  readonly modelURL: string
  readonly #lab: Lab
  readonly #model: StubModel
  readonly #operator: RedisConnection
  readonly #store: RedisProjectionStore
  readonly #keys: IssuedKey[] = []
  readonly #models: NonNullable<LimitedAnswersOptions['models']>
  readonly #chatModels: ReadonlySet<string>
  readonly #accounts: NonNullable<LimitedAnswersOptions['accounts']>
  #epoch = 1

  private constructor({ lab, redis, gateways, model, options }: AnswersParts) {
    this.#lab = lab
    this.redis = redis
    this.gateways = gateways
    this.#model = model
    this.modelURL = model.url
    this.#models = { ...options.models, ...options.chatModels }
    this.#chatModels = new Set(Object.keys(options.chatModels ?? {}))
    this.#accounts = options.accounts ?? {}
    this.#operator = new RedisConnection(redisSettings(redis, 'operator'), 'operator', { commandMs: 5_000 })
    this.#store = new RedisProjectionStore(this.#operator, 'hg')
  }

  static async open(lab: Lab, name: string, options: LimitedAnswersOptions = {}): Promise<LimitedAnswers> {
    const { gateways = 1, env = {}, redisArgs = [] } = options
    const redis = await lab.redis({ args: redisArgs })
    const programs: Program[] = []
    for (let i = 0; i < gateways; i += 1) {
      const set = typeof env === 'function' ? env(redis, i) : { ...redis.envFor('gateway'), ...env }
      const own = { DEREGISTRATION_SECONDS: '0', ACCESS_LOG: 'errors', LIMITS_WAIT_MS: PATIENT_MS, ...set }
      const spec = { program: 'gateway', pod: `${name}-${i}`, ip: lab.address.ip, folder: lab.folder, env: own } as const
      programs.push(await Program.prepare(spec))
    }
    let onRequest = (): void => undefined
    const model = await startStubModel({ host: lab.address.ip, onRequest: () => onRequest() })
    const opened = new LimitedAnswers({ lab, redis, gateways: programs, model, options })
    onRequest = () => (opened.reached += 1)
    await opened.rebuild()
    await Promise.all(programs.map((program) => program.start()))
    return opened
  }

  get gateway(): Program {
    const [first] = this.gateways
    if (!first) throw new Error('no gateway')
    return first
  }

  /** Writes a key with limits, seeds its budgets, and waits until every pod knows it. */
  async issue(uid: string, change: Partial<KeyRecord>, spent: ReadonlyArray<readonly [BudgetRecord, number]> = []): Promise<IssuedKey> {
    const key = issuedKey(uid, change)
    this.#keys.push(key)
    if (change.budgets) await this.seed(uid, spent)
    await this.write(key)
    return key
  }

  /** Replaces the record of a key. @returns its revision */
  async write(key: IssuedKey, change: Partial<KeyRecord> = {}): Promise<number> {
    const text = recordText(key.record, change)
    const written = await this.#store.write(writer(), `e${this.#epoch}`, [{ kind: 'key', op: 'put', id: key.record.uid, text }], 0)
    const revision = written.outcome === 'written' ? (written.revisions[0] ?? 0) : 0
    await waitFor('every pod to know the key', async () => {
      const seen = await Promise.all(this.gateways.map((gateway) => gateway.metric('headgate_projection_revision')))
      return seen.every((at) => (at ?? 0) >= revision)
    })
    return revision
  }

  /** Starts the budgets of a key with this spend, unless they have a seed. @param spent micro-units or tokens */
  async seed(uid: string, spent: ReadonlyArray<readonly [BudgetRecord, number]> = [], seed = 'seed-1'): Promise<void> {
    const fields = spent.flatMap(([budget, amount]) => [budgetField(budgetID(budget), startOf(budget)), String(amount)])
    await this.redis.admin.fcall(LEDGER.seed, 1, ledgerKeys('hg', uid).budget, seed, ...fields)
  }

  /** Fills an empty Redis as an operator does: the library, then a new data set with every key and model. */
  async rebuild(): Promise<void> {
    await this.redis.admin.call('FUNCTION', 'LOAD', 'REPLACE', LEDGER.code)
    await waitFor('the operator to be connected', () => this.#operator.client.status === 'ready')
    await this.#store.prepare()
    const models = [
      this.#served(PRICED, { pricing: PRICING }),
      this.#served('free', { pricing: FREE }),
      this.#served('unpriced', {}),
      this.#served('twice', { pricing: PRICING }),
      this.#served(UNREPORTED, { pricing: PRICING }),
      this.#served(IMPATIENT, { timeouts: { firstByteSeconds: 1, idleSeconds: 1, totalSeconds: 60 } }),
      ...Object.entries(this.#models).map(([uid, change]) => this.#served(uid, change)),
    ]
    const accounts = Object.entries(this.#accounts)
    for (const [uid, { budgets }] of accounts) if (budgets) await this.seed(uid)
    const keys = this.#keys.map(({ record }) => ({ kind: 'key' as const, op: 'put' as const, id: record.uid, text: recordText(record) }))
    this.#epoch += 1
    await this.#store.rebuild(writer(), `e${this.#epoch}`, 1_000 * this.#epoch, [
      { kind: 'plan', op: 'put', id: PLAN.uid, text: encodePlanRecord(PLAN) },
      ...accounts.map(([id, shared]) => ({ kind: 'account' as const, op: 'put' as const, id, text: accountText(id, shared) })),
      ...[...models, ...keys],
    ])
  }

  call(key: IssuedKey, question: Question = {}, gateway: Program = this.gateway): Promise<Answer> {
    return ask(this.#lab, gateway.url, { model: PRICED, credential: key.credential, ...question })
  }

  /** `/v1/key` of a gateway. */
  async view({ credential }: IssuedKey, gateway: Program = this.gateway): Promise<KeyView> {
    const answer = await fetch(`${gateway.url}/v1/key`, { headers: callHeaders(credential) })
    const text = this.#lab.record(await answer.text())
    if (!answer.ok) throw new Error(`/v1/key answers ${answer.status}: ${text}`)
    return JSON.parse(text) as KeyView
  }

  async ledger(uid: string, part: 'rate' | 'conc' | 'budget'): Promise<Record<string, string>> {
    return await this.redis.admin.hgetall(ledgerKeys('hg', uid)[part])
  }

  async permits(key: IssuedKey): Promise<number> {
    const fields = Object.entries(await this.ledger(key.record.uid, 'conc'))
    return fields.reduce((sum, [name, value]) => sum + (name.startsWith('n:') ? Number(value) : 0), 0)
  }

  async close(): Promise<void> {
    await Promise.all(this.gateways.map((gateway) => gateway.stop()))
    this.#operator.close()
    await this.#model.close()
  }

  #served(uid: string, change: Partial<ModelRecord>) {
    const { ip } = this.#lab.address
    const endpoints = [...(uid === 'twice' ? [`${ip}:9`] : []), `${ip}:${this.#model.port}`] // the discard port has no listener
    const routes = this.#chatModels.has(uid) ? { routes: ['chat/completions'] } : {}
    const backend = backendRecord({ name: 'stub', endpoints, upstreamModel: uid, ...routes })
    const text = modelText(uid, { backends: [backend], contextTokens: 8_000, ...change })
    return { kind: 'model' as const, op: 'put' as const, id: uid, text }
  }
}

/** A budget of a key in tests: Lifetime, so that midnight changes nothing. */
export function lifeBudget(change: Partial<BudgetRecord> = {}): BudgetRecord {
  return { name: 'life', unit: 'Currency', amount: 1_000_000, window: 'Lifetime', timeZone: 'UTC', onExceeded: 'Block', ...change }
}

function startOf({ window }: BudgetRecord): number {
  if (window !== 'Lifetime') throw new Error('tests of limits use budgets without an end')
  return 0
}
