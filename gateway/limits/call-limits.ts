/** The limits of a call: reserves units before the request to a backend, and charges the usage afterwards. */
import type { ModelRequest } from '../dialects/dialect.ts'
import type { CountEstimate, PromptSize } from '../dialects/prompt-size.ts'
import type { Usage } from '../dialects/usage.ts'
import { type ErrorFormat, GatewayError, type RowID } from '../errors.ts'
import type { Clock } from '#platform/clock.ts'
import type { ModelPricing, ModelRecord } from '#contract/records/model-record.ts'
import { callCost, mostCallCost } from './call-price.ts'
import { believed, countedPrompt, declaredOutput, estimateTokens, LearnedOutput, LearnedRatio, type TokenEstimate } from './estimate.ts'
import type { Hold, Ledger, LimitSubject, Need, Refused, SettledUsage, Verdict } from './ledger.ts'
import { rateHeaders } from './rate-headers.ts'
import { refusalAnswer, type RefusedRequest } from './refusal-answer.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { effective } from '#policy/effective.ts'
import { countsOf } from '#contract/usage/usage-report.ts'
import type { UsageMeter } from '../usage/usage-meter.ts'
import { RecentTimes } from './recent-times.ts'

/** Output tokens that a call holds: all that the request declares, or the amount that similar requests have used before. */
type TokenHold = 'Declared' | 'Expected'

interface CallLimitsDeps {
  readonly ledger: Ledger
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly tokenHold: TokenHold
  readonly onDecision?: (verdict: Verdict) => void
  /** Counts the calls of keys with an account; absent: nothing counts them. */
  readonly usage?: Pick<UsageMeter, 'count'> | undefined
}

interface LimitedCall {
  /** uid of the key. */
  readonly uid: string
  /** Name of its account in the ledger; undefined: its calls are not counted. */
  readonly account?: string | undefined
  /** The key first. None: the call is only counted. */
  readonly subjects: readonly LimitSubject[]
  readonly model: ModelRecord
  readonly asked: ModelRequest
  readonly size: PromptSize
  readonly format: ErrorFormat
}

interface ChargedOutcome {
  readonly usage: Usage | undefined
  readonly wasSent: boolean
  readonly error: GatewayError | undefined
}

/** Maximum number of models and of keys with stored experience. */
const MAX_LEARNED = 10_000
/** Maximum number of models of one key with stored experience. */
const MAX_LEARNED_PER_KEY = 32
/** A tokenizer may find up to this many times the tokens of the estimate. */
const INPUT_MARGIN = 1.2

export class CallLimits {
  readonly #deps: CallLimitsDeps
  readonly #ratios = new Map<string, LearnedRatio>()
  /** Experience by key, then by model. */
  readonly #outputs = new Map<string, Map<string, LearnedOutput>>()
  readonly #storms = new StormGuard()

  constructor(deps: CallLimitsDeps) {
    this.#deps = deps
  }

  /** @returns the hold of the call until it is settled, or the refusal (rows 16 to 23, 36, 43, 44), which has consumed nothing */
  reserve(call: LimitedCall): HeldCall | GatewayError | Promise<HeldCall | GatewayError> {
    const { model, uid, subjects, asked, size } = call
    const ratio = learned(this.#ratios, model.uid, MAX_LEARNED, newRatio)
    const output = learned(learned(this.#outputs, uid, MAX_LEARNED, newOutputs), model.uid, MAX_LEARNED_PER_KEY, newOutput)
    const estimate = estimateTokens({ asked, size, bounds: model, ratio, learned: output })
    const verdict = subjects.length === 0 ? UNLIMITED : this.#deps.ledger.reserve(subjects, needOf(call, estimate, this.#deps.tokenHold))
    const decided = (now: Verdict): HeldCall | GatewayError => this.#decided(now, call, { estimate, ratio, output })
    return verdict instanceof Promise ? verdict.then(decided) : decided(verdict)
  }

  /** The tokens of a prompt by all that is known of its model. Costs nothing, and remembers nothing. */
  countOf(uid: string, size: PromptSize): CountEstimate {
    return countedPrompt(size, this.#ratios.get(uid) ?? { ratio: 1 })
  }

  /** Row 19 for a key that continues although requests per minute are used up. Reads no body and asks no store. */
  refusalUnread({ uid, subjects }: Pick<LimitedCall, 'uid' | 'subjects'>, format: ErrorFormat): GatewayError | undefined {
    if (!this.#storms.isStorm(uid, this.#deps.clock.monotonic())) return undefined
    for (const subject of subjects) {
      const known = this.#deps.ledger.knownRefusal(subject)
      if (known) return this.#refused(known, uid, { format, model: undefined })
    }
    return undefined
  }

  #decided(verdict: Verdict, call: LimitedCall, experience: Experience): HeldCall | GatewayError {
    const { uid, format, asked } = call
    if (verdict.outcome === 'refused') return this.#refused(verdict, uid, { format, model: asked.model })
    if (verdict !== UNLIMITED) this.#deps.onDecision?.(verdict)
    if (verdict.outcome === 'unavailable')
      return new GatewayError('limitsUnavailable', {}, { cause: `limits: ${verdict.reason}`, retryAfterMs: verdict.waitMs })
    const headers = rateHeaders(verdict.rates, format, this.#deps.clock.now())
    return new HeldCall({ hold: verdict, headers, call, experience, ledger: this.#deps.ledger, usage: this.#deps.usage })
  }

  #refused(verdict: Refused, uid: string, asked: RefusedRequest): GatewayError {
    const { onDecision, clock } = this.#deps
    onDecision?.(verdict)
    if (verdict.limit === 'requests') this.#storms.refused(uid, clock.monotonic())
    return refusalAnswer(verdict, asked, clock.now())
  }
}

interface Experience {
  readonly estimate: TokenEstimate
  readonly ratio: LearnedRatio
  readonly output: LearnedOutput
}

interface HeldCallDeps {
  readonly hold: Hold
  readonly headers: readonly string[]
  readonly call: LimitedCall
  readonly experience: Experience
  readonly ledger: Ledger
  readonly usage: Pick<UsageMeter, 'count'> | undefined
}

/** The hold of a call without limits. */
const UNLIMITED: Hold = { outcome: 'held', rates: {} }

export class HeldCall {
  readonly #deps: HeldCallDeps

  constructor(deps: HeldCallDeps) {
    this.#deps = deps
  }

  get answerHeaders(): readonly string[] {
    return this.#deps.headers
  }

  /** Tokens of the prompt, in case the backend does not report them. */
  get inputTokens(): number {
    return this.#deps.experience.estimate.input
  }

  /** Tokens that the answer of such a call usually has. */
  get outputTokens(): number {
    return this.#deps.experience.estimate.output
  }

  /** Charges nothing, not even the request, because no backend has received it. */
  release(): void {
    const { ledger, hold } = this.#deps
    if (hold !== UNLIMITED) ledger.release(hold)
  }

  /** Charges a call. If a backend received the request and did no work, charges only the request. */
  settle({ usage: reported, wasSent, error }: ChargedOutcome): void {
    const { call, experience } = this.#deps
    const usage = reported && believed(reported, experience.estimate)
    if (usage) this.#learn(usage)
    const wasAsked = usage !== undefined || wasSent || (error !== undefined && CHARGED_FAILURES.has(error.row.id))
    const settled = usage ? settledUsage(usage, call.model.pricing) : NOTHING_USED
    if (wasAsked) this.#charge(settled)
    else this.release()
    this.#count(usage, settled, { wasAsked, hasFailed: error !== undefined })
  }

  /** Charges the whole hold: a bug has lost the outcome, and a server may have worked. */
  settleUnknown(): void {
    this.#charge(undefined)
    this.#count(undefined, NOTHING_USED, { wasAsked: true, hasFailed: true })
  }

  #charge(settled: SettledUsage | undefined): void {
    const { ledger, hold } = this.#deps
    if (hold !== UNLIMITED) ledger.settle(hold, settled)
  }

  /** Counts the call for its account. A client that left before any server was asked counts as nothing. */
  #count(used: Usage | undefined, { costMicros = 0, inputTokens, outputTokens }: SettledUsage, { wasAsked, hasFailed }: CallEnd): void {
    const { usage, call } = this.#deps
    if (call.account === undefined || !(wasAsked || hasFailed)) return
    const counts = countsOf({
      requests: Number(wasAsked),
      inputTokens,
      cachedInputTokens: used?.cachedInputTokens ?? 0,
      outputTokens,
      costMicros,
      estimated: Number(used?.isEstimated ?? false),
      failed: Number(hasFailed),
    })
    usage?.count({ account: call.account, key: call.uid, model: call.model.servedName }, counts)
  }

  #learn({ inputTokens, outputTokens, isEstimated }: Usage): void {
    if (isEstimated) return
    const { experience, call } = this.#deps
    experience.ratio.learn(call.size, inputTokens)
    if (call.asked.choices > 0) experience.output.learn(outputTokens / call.asked.choices)
  }
}

interface CallEnd {
  /** Whether a server has received the call. */
  readonly wasAsked: boolean
  readonly hasFailed: boolean
}

const NOTHING_USED: SettledUsage = { inputTokens: 0, outputTokens: 0, costMicros: 0 }

/** Failures of a backend that has received the request: the request counts. */
const CHARGED_FAILURES: ReadonlySet<RowID> = new Set([
  ...(['backendOverloaded', 'backendAuth', 'backendRejected', 'contextOverflow', 'backendTooLarge'] as const),
  ...(['backendModelNotFound', 'backendError', 'backendTimeout', 'streamBroken', 'internalError'] as const),
])

function needOf({ model, asked }: LimitedCall, estimate: TokenEstimate, tokenHold: TokenHold): Need {
  const { inputMin, input, inputMax, output, outputMax } = estimate
  const isDeclared = tokenHold === 'Declared' && declaredOutput(asked) !== undefined
  const prompt = Math.min(inputMax, tokenHold === 'Declared' ? Math.ceil(INPUT_MARGIN * input) : input)
  return {
    tokens: prompt + (isDeclared ? outputMax : output),
    certainTokens: inputMin,
    holdByUnit: { Currency: mostCallCost({ input: inputMax, output: outputMax }, model.pricing), Tokens: inputMax + outputMax },
  }
}

function settledUsage(usage: Usage, pricing: ModelPricing | undefined): SettledUsage {
  const { inputTokens, outputTokens } = usage
  return { inputTokens, outputTokens, costMicros: callCost(usage, pricing) }
}

const newRatio = (): LearnedRatio => new LearnedRatio()
const newOutputs = (): Map<string, LearnedOutput> => new Map()
const newOutput = (): LearnedOutput => new LearnedOutput()

/** Looks up experience or makes it. Experience builds up again within some requests, so the oldest entry may be dropped. */
function learned<T>(known: Map<string, T>, name: string, most: number, make: () => T): T {
  const found = known.get(name)
  if (found !== undefined) return found
  makeRoom(known, most)
  const made = make()
  known.set(name, made)
  return made
}

/** Drops the oldest entry of a full map. */
function makeRoom(map: Map<string, unknown>, most: number): void {
  if (map.size < most) return
  const [oldest = ''] = map.keys()
  map.delete(oldest)
}

/** Number of refusals within the time that make a storm. */
const MANY = 20
const WITHIN_MS = 10_000

/** Finds keys whose clients ignore refusals: refused again and again for requests per minute. */
export class StormGuard {
  readonly #times = new RecentTimes(MANY)

  refused(uid: string, now: number): void {
    this.#times.add(uid, now)
  }

  /** Whether the last 20 refusals lie within 10 s. */
  isStorm(uid: string, now: number): boolean {
    return now - this.#times.earliest(uid) < WITHIN_MS
  }
}

const NO_SUBJECTS: readonly LimitSubject[] = Object.freeze([])
/** Subjects of records with limits, so that a call makes no new subject. */
const ownSubjects = new WeakMap<KeyRecord, readonly LimitSubject[]>()

/** A key as far as limits know it: with the subjects of its account, or its record alone. */
interface LimitedCaller {
  readonly record: KeyRecord
  readonly subjects?: readonly LimitSubject[] | undefined
}

/** What limits the calls of a key, the key first. Empty for a key whose calls ask no ledger. */
export function limitSubjects({ record, subjects }: LimitedCaller): readonly LimitSubject[] {
  if (subjects !== undefined) return subjects
  if (record.limits === undefined && record.budgets === undefined) return NO_SUBJECTS
  const known = ownSubjects.get(record)
  if (known) return known
  const made: readonly LimitSubject[] = [{ uid: record.uid, whose: 'key', ...effective(record) }]
  ownSubjects.set(record, made)
  return made
}
