/** Processes with a model server behind them and one real Redis, on a clock that stands still until a test moves it. */
import { CallLimits, type HeldCall } from '../../gateway/limits/call-limits.ts'
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import type { LedgerStore, LimitSubject } from '../../gateway/limits/ledger.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { chatCompletions } from '../../gateway/dialects/chat-completions.ts'
import { promptSize } from '../../gateway/dialects/prompt-size.ts'
import { declared } from '../../gateway/dialects/request-shape.ts'
import { GatewayError } from '../../gateway/errors.ts'
import type { Outcome } from '../../gateway/upstream/forward-job.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { LedgerRedis } from './ledger-redis.ts'
import { budget, subject } from './ledger-world.ts'
import { ManualClock, settle } from './manual-clock.ts'
import { modelRecord } from './records.ts'
import { CHAT, chunk, deadAddress, DONE, Harness, json, type Reply, sse, startBackend, until } from './upstream-harness.ts'

/** One micro-unit per token, so that both budgets of a key spend the same. */
const PRICING = { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000, cachedInputPerMillion: 1_000_000 }
const TIMEOUTS = { firstByteSeconds: 2, idleSeconds: 2, totalSeconds: 20 }
const AMOUNT = 1_000_000_000
/** Longest wait of a request for the ledger, ms. */
const WAIT_MS = 1_000

export interface ServerAnswer {
  readonly what: string
  /** What a call costs: the usage that its server reports, a marked estimate, at most the bound of an unbelievable report, or nothing. */
  readonly cost: 'reported' | 'estimated' | 'bounded' | 'nothing'
  /** @param tokens that the server reports, in and out */
  readonly reply: (tokens: number) => Reply
  /** `silent`: a time-out ends it. `dead`: there is no server. */
  readonly how: 'plain' | 'stream' | 'silent' | 'silent stream' | 'dead'
}

const OK = { id: 'c', model: 'llama', choices: [{ index: 0, message: { content: 'one two three' }, finish_reason: 'stop' }] }
const FINISH = chunk('', 'stop')
const words = (count: number): string => Array.from({ length: count }, (_, at) => chunk(` w${at}`)).join('')
const usage = (prompt: unknown, completion: unknown): object => ({ usage: { prompt_tokens: prompt, completion_tokens: completion } })
const reporting = (counts: object): string => `data: ${JSON.stringify({ id: 'c', model: 'llama', choices: [], ...counts })}\n\n`
const whole = (counts: object): Reply => json(200, { ...OK, ...counts })
const streaming =
  (text: string, then: 'end' | 'cut' | 'hang' = 'end'): Reply =>
  (response) =>
    sse(response).write(text, () => void (then === 'end' ? response.end() : then === 'cut' && response.destroy()))
const breaking: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.write(`{"choices":["${'x'.repeat(2_000)}`, () => response.destroy())
}

const answer = (...[what, cost, how, reply]: [string, ServerAnswer['cost'], ServerAnswer['how'], ServerAnswer['reply']]): ServerAnswer => ({
  ...{ what, cost, how, reply },
})
export const ANSWERS: readonly [ServerAnswer, ...ServerAnswer[]] = [
  answer('a report', 'reported', 'plain', (tokens) => whole(usage(tokens, tokens))),
  answer('a streamed report', 'reported', 'stream', (tokens) => streaming(words(3) + FINISH + reporting(usage(tokens, tokens)) + DONE)),
  answer('no report', 'estimated', 'plain', () => whole({})),
  answer('a stream without a report', 'estimated', 'stream', () => streaming(words(5) + FINISH + DONE)),
  answer('no answer', 'estimated', 'silent', () => () => undefined),
  answer('a stream that falls silent', 'estimated', 'silent stream', (tokens) => streaming(words(tokens % 4), 'hang')),
  answer('a cut stream', 'estimated', 'stream', (tokens) => streaming(words(1 + (tokens % 4)), 'cut')),
  answer('a cut body', 'estimated', 'plain', () => breaking),
  answer('5e15 tokens', 'bounded', 'plain', () => whole(usage(5e15, 5e15))),
  answer('2^32 - 1 tokens', 'bounded', 'stream', () => streaming(words(1) + reporting(usage(1, 2 ** 32 - 1)) + DONE)),
  answer('-1 tokens', 'bounded', 'plain', () => whole(usage(-1, -1))),
  answer('no number of tokens', 'bounded', 'plain', () => whole(usage('many', 1e99))),
  answer('a refusal', 'nothing', 'plain', () => json(400, { error: { message: 'bad' } })),
  answer('an error', 'nothing', 'plain', () => json(500, { error: { message: 'broken' } })),
  answer('a reset at once', 'nothing', 'plain', () => (response) => response.socket?.resetAndDestroy()),
  answer('no server', 'nothing', 'dead', () => () => undefined),
]

export interface MoneyCall {
  readonly process: MoneyProcess
  readonly uid: string
  readonly answer: ServerAnswer
  readonly tokens: number
  readonly held: HeldCall
  readonly outcome: Outcome
  /** Micro-units that the call holds: the most that it may use. */
  readonly hold: number
  /** Micro-units; undefined while the call is not settled. */
  charge?: number
}

/** The way of one process to Redis. */
class Link implements LedgerStore {
  fate: 'works' | 'reply lost' | 'never arrives' = 'works'
  /** Whether Redis has counted a call of which the process knows no answer. */
  isInDoubt = false
  readonly #world: MoneyWorld

  constructor(world: MoneyWorld) {
    this.#world = world
  }

  call(call: LedgerCall): Promise<LedgerReply> {
    return this.#world.during(this.#call(call))
  }

  async ping(): Promise<void> {
    if (this.fate !== 'works') throw new Error('cut off')
  }

  async #call(call: LedgerCall): Promise<LedgerReply> {
    const { fate } = this
    if (fate === 'never arrives') throw new Error('cut off')
    await this.#world.redis.setClock(this.#world.clock.now())
    const reply = await this.#world.store.call(call)
    this.isInDoubt = fate === 'reply lost'
    if (this.isInDoubt) throw new Error('cut off')
    return reply
  }
}

export class MoneyProcess {
  readonly name: string
  readonly link: Link
  readonly ledger: LeaseLedger
  readonly limits: CallLimits
  isAlive = true
  /** Whether the operator has forgotten it while a report of it was in doubt: that report counts twice. */
  mayCountTwice = false
  /** Of the last reservation and of the last settlement, in micro-units. */
  lastHold = 0
  lastCharge = 0

  constructor(world: MoneyWorld, name: string) {
    const { clock } = world
    this.name = name
    this.link = new Link(world)
    this.ledger = new LeaseLedger({ store: this.link, clock, process: name, live: () => 3 })
    const [reserve, settle] = [this.ledger.reserve.bind(this.ledger), this.ledger.settle.bind(this.ledger)]
    this.ledger.reserve = (subjects, need) => {
      this.lastHold = need.holdByUnit.Currency ?? 0
      return reserve(subjects, need)
    }
    this.ledger.settle = (hold, used) => {
      this.lastCharge = used ? (used.costMicros ?? 0) : this.lastHold
      settle(hold, used)
    }
    this.limits = new CallLimits({ clock, ledger: this.ledger, tokenHold: 'Declared' })
  }
}

export class MoneyWorld {
  readonly redis: LedgerRedis
  readonly store: RedisLedgerStore
  clock = new ManualClock(Date.UTC(2026, 0, 14, 12))
  /** In the second one a second takes some milliseconds, so that time-outs cost the test little. */
  readonly #fronts: readonly [Harness, Harness]
  #reply: Reply = () => undefined
  readonly #pending = new Set<Promise<unknown>>()

  private constructor(redis: LedgerRedis, fronts: readonly [Harness, Harness]) {
    this.redis = redis
    this.store = new RedisLedgerStore(redis.gateway, 'hg')
    this.#fronts = fronts
  }

  static async start(): Promise<MoneyWorld> {
    const redis = await LedgerRedis.start(LEDGER_TIMING, 'set')
    const world = new MoneyWorld(redis, [await new Harness({ tickMs: 60_000 }).start(), await new Harness().start()])
    const [backend, dead] = [await startBackend((response, received) => world.#reply(response, received)), await deadAddress()]
    for (const front of world.#fronts) {
      front.serve([backend.address], { timeouts: TIMEOUTS })
      front.serve([dead], { uid: 'uid-2', name: 'dead', servedName: 'dead', timeouts: TIMEOUTS })
    }
    return world
  }

  /** Ends what the processes of the last schedule still wait for. */
  renew(): void {
    this.clock = new ManualClock(this.clock.now())
  }

  during<T>(work: Promise<T>): Promise<T> {
    this.#pending.add(work)
    void work.catch(() => undefined).then(() => this.#pending.delete(work))
    return work
  }

  /** Moves time forward; calls to Redis that have left by then are answered before the next timer runs. */
  async advance(ms: number): Promise<void> {
    const endMs = this.clock.monotonic() + ms
    await this.#quiet()
    while (this.clock.monotonic() + this.clock.nextInMs <= endMs) {
      this.clock.fireNext()
      await this.#quiet()
    }
    this.clock.skip(Math.max(0, endMs - this.clock.monotonic()))
  }

  /** One call to the end of its answer. @returns none if it was refused */
  async call(process: MoneyProcess, uid: string, { answer, tokens }: Pick<MoneyCall, 'answer' | 'tokens'>): Promise<MoneyCall[]> {
    const [stream, model] = [answer.how.endsWith('stream'), answer.how === 'dead' ? 'dead' : 'llama']
    const body = { model, stream, max_tokens: 64, messages: [{ role: 'user', content: 'Say something.' }] }
    const [size, asked] = [promptSize(body, JSON.stringify(body).length), { model, stream, ...declared(body, chatCompletions) }]
    const record = modelRecord(model, { pricing: PRICING, contextTokens: 4_096 })
    const held = await this.#decided(process, { uid, subjects: [keyOf(uid)], model: record, asked, size, format: 'openai' })
    if (held === undefined) return []
    const hold = process.lastHold
    this.#reply = answer.reply(tokens)
    const outcome = await this.#forward(this.#fronts[answer.how.startsWith('silent') ? 1 : 0], held, body)
    return [{ process, uid, answer, tokens, held, outcome, hold }]
  }

  async #decided(process: MoneyProcess, call: Parameters<CallLimits['reserve']>[0]): Promise<HeldCall | undefined> {
    let decision: HeldCall | GatewayError | undefined
    void Promise.resolve(process.limits.reserve(call)).then((decided) => (decision = decided))
    for (let ms = 0; ms < WAIT_MS && decision === undefined; ms += 50) await this.advance(ms === 0 ? 0 : 50)
    if (decision === undefined) throw new Error('a call waits for ever')
    return decision instanceof GatewayError ? undefined : decision
  }

  async #forward(front: Harness, { inputTokens, outputTokens }: HeldCall, body: object): Promise<Outcome> {
    const { outcomes, refused } = front
    front.job = { isMetered: true, inputTokens, outputTokens }
    outcomes.length = 0
    refused.length = 0
    await front.post(CHAT, body).catch(() => undefined) // an answer that breaks off
    await until(() => outcomes.length + refused.length > 0)
    return (outcomes[0] ?? refused[0]) as Outcome // one of them, as just seen
  }

  /** Micro-units and tokens of the budgets in Redis; none without the key. */
  async booked(uid: string): Promise<Array<Readonly<Record<'spent' | 'held' | 'unsettled', number>>>> {
    const fields = await this.redis.hash(ledgerKeys('hg', uid).budget)
    const value = (id: string, part: string): number => Number(fields[`${id}:Lifetime:0:${part}`] ?? 0)
    const ids = fields['seed'] === undefined ? [] : ['money:Currency', 'tokens:Tokens']
    return ids.map((id) => ({ spent: value(id, 's'), held: value(id, 'H'), unsettled: value(id, 'u') }))
  }

  async #quiet(): Promise<void> {
    await settle()
    while (this.#pending.size > 0) {
      await Promise.allSettled(this.#pending)
      await settle()
    }
  }
}

function keyOf(uid: string): LimitSubject {
  const life = { window: 'Lifetime', amount: AMOUNT } as const
  return subject({ uid, budgets: [budget({ name: 'money', ...life }), budget({ name: 'tokens', unit: 'Tokens', ...life })] })
}
