/** `GET /v1/key`: the limits and budgets of the caller's key, its usage, and the times of the resets. */
import { sentCredential } from '../auth/authenticate.ts'
import type { Caller } from '../auth/key-table.ts'
import { GatewayError, type RefusedLimitDetails } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'
import type { BudgetSnapshot, LedgerSnapshot, Limits, LimitSubject, RateState } from '../limits/ledger.ts'
import { limitSubject } from '../limits/call-limits.ts'
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
    const subject = limitSubject(caller.record)
    const used = subject && (await usedOf(subject, deps))
    const body = {
      object: 'key',
      prefix: prefixOf(exchange),
      expiresAt: resetAt(caller.expiresAt),
      models: modelsOf(caller, deps),
      limits: subject && used ? limitsOf(subject, used) : [],
      budgets: subject && used ? used.budgets.map((budget) => shownBudget(budget, subject)) : [],
    }
    if (!exchange.response.closed) send(exchange, Buffer.from(JSON.stringify(body)))
  }
}

async function usedOf(subject: LimitSubject, { ledger }: RouteDeps): Promise<LedgerSnapshot> {
  try {
    return await ledger.snapshot(subject)
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

/** The names are those of `error.metadata` in a refusal. */
function limitsOf(subject: LimitSubject, { requests, tokens, concurrency, atMs }: LedgerSnapshot): object[] {
  const rate = (limit: RefusedLimitDetails['limit'], field: keyof Limits, state: RateState | undefined): object[] =>
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

function shownBudget({ name, unit, window, amount, spent, held, unsettled, endMs }: BudgetSnapshot, subject: LimitSubject): object {
  const shown = (value: number): string | number => (unit === 'Currency' ? formatAmount(value, unit) : value)
  const used = spent + unsettled
  const spec = subject.budgets.find((budget) => budget.name === name)
  return {
    ...{ limit: 'budget', budget: name, unit, window, onExceeded: spec?.onExceeded, owner: spec?.whose ?? subject.whose },
    ...{ amount: shown(amount), used: shown(used), held: shown(held), left: shown(Math.max(0, amount - used)), resetsAt: resetAt(endMs) },
  }
}

function resetAt(ms: number): string | null {
  return Number.isFinite(ms) ? instant(ms) : null
}
