/** `GET /v1/key`: the limits and budgets of the caller's key, its usage, and the times of the resets. */
import { sentCredential } from '../auth/authenticate.ts'
import type { Caller } from '../auth/key-table.ts'
import { GatewayError, type RefusedLimitDetails } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'
import type { BudgetSnapshot, LedgerSnapshot, LimitOwner, Limits, LimitSubject, RateState } from '../limits/ledger.ts'
import { limitSubjects } from '../limits/call-limits.ts'
import { instant } from '../limits/rate-headers.ts'
import { ownerOf } from '../limits/refusals.ts'
import { credentialPrefix } from '#contract/values/credential.ts'
import { formatAmount } from '#contract/values/micros.ts'
import { admits } from '#policy/model-access.ts'
import { identify, type RouteDeps, type RouteHandler, send } from './route.ts'

/** Makes the handler. It answers row 23 while limits cannot be checked, because clients would take an estimate for the truth. */
export function showKey(deps: RouteDeps): RouteHandler {
  return async (exchange) => {
    const caller = identify(exchange, deps)
    await deps.turns.take(caller.turns)
    if (exchange.response.closed) return // the client has left
    const readings = await Promise.all(limitSubjects(caller).map((subject) => readingOf(subject, deps)))
    const body = {
      object: 'key',
      prefix: prefixOf(exchange),
      expiresAt: resetAt(caller.expiresAt),
      models: modelsOf(caller, deps),
      limits: limitsOf(readings),
      budgets: readings.flatMap(budgetsOf),
    }
    if (!exchange.response.closed) send(exchange, Buffer.from(JSON.stringify(body)))
  }
}

interface Reading {
  readonly subject: LimitSubject
  readonly used: LedgerSnapshot
}

async function readingOf(subject: LimitSubject, { ledger }: RouteDeps): Promise<Reading> {
  try {
    return { subject, used: await ledger.snapshot(subject) }
  } catch (cause) {
    throw new GatewayError('limitsUnavailable', {}, { cause })
  }
}

/** The prefix as `status.prefix` of the ApiKey shows it. */
function prefixOf({ request }: Exchange): string {
  const sent = sentCredential(request, true)
  return typeof sent === 'string' ? credentialPrefix(sent) : ''
}

/** The list of the key, or the remaining models where other lists reduce it. */
function modelsOf({ record }: Caller, deps: RouteDeps): readonly string[] {
  const [own = [], ...others] = record.models
  if (others.length === 0) return own
  return deps.models.visible(record.namespace).flatMap(({ name, entry }) => (admits(record, entry.names) ? [name] : []))
}

/** One limit. The names are those of `error.metadata` in a refusal. */
interface ShownLimit {
  readonly limit: RefusedLimitDetails['limit']
  readonly owner: LimitOwner
  readonly amount: number
  readonly left: number
  readonly resetsAt: string | null
}

/** Of each kind the limit of which the least is left: the key's own, or that of its account. */
function limitsOf(readings: readonly Reading[]): ShownLimit[] {
  const nearest = new Map<string, ShownLimit>()
  for (const shown of readings.flatMap(limitsOfOne)) {
    const other = nearest.get(shown.limit)
    if (other === undefined || shown.left < other.left) nearest.set(shown.limit, shown)
  }
  return [...nearest.values()]
}

function limitsOfOne({ subject, used: { requests, tokens, concurrency, atMs } }: Reading): ShownLimit[] {
  const rate = (limit: ShownLimit['limit'], field: keyof Limits, state: RateState | undefined): ShownLimit[] =>
    state
      ? [{ limit, owner: ownerOf(subject, field), amount: state.limit, left: state.remaining, resetsAt: resetAt(atMs + state.resetMs) }]
      : []
  const permits = concurrency && {
    limit: concurrency.limit,
    remaining: Math.max(0, concurrency.limit - concurrency.used),
    resetMs: Infinity,
  }
  return [
    ...rate('requests_per_minute', 'requestsPerMinute', requests),
    ...rate('tokens_per_minute', 'tokensPerMinute', tokens),
    ...rate('concurrent_requests', 'maxConcurrentRequests', permits),
  ]
}

/** Money of an account does not show to a key. */
function budgetsOf({ subject, used }: Reading): object[] {
  const shown = used.budgets.filter(({ unit }) => unit !== 'Currency' || subject.whose === 'key')
  return shown.map((budget) => shownBudget(budget, subject))
}

function shownBudget({ name, unit, window, amount, spent, held, unsettled, endMs }: BudgetSnapshot, subject: LimitSubject): object {
  const units = (value: number): string | number => (unit === 'Currency' ? formatAmount(value, unit) : value)
  const used = spent + unsettled
  const spec = subject.budgets.find((budget) => budget.name === name)
  return {
    ...{ limit: 'budget', budget: name, unit, window, onExceeded: spec?.onExceeded, owner: spec?.whose ?? subject.whose },
    ...{ amount: units(amount), used: units(used), held: units(held), left: units(Math.max(0, amount - used)), resetsAt: resetAt(endMs) },
  }
}

function resetAt(ms: number): string | null {
  return Number.isFinite(ms) ? instant(ms) : null
}
