/** Derives the condition LimitsEnforceable of an ApiKey, and whether models without a price leave the key nothing to call. Pure. */
import { findCondition } from '#api/condition-list.ts'
import type { ApiKeyCondition } from '#api/conditions.ts'
import { budgetsWithoutZone } from '#api/key-policy.ts'
import { rfc3339 } from '#contract/values/rfc3339.ts'
import { isLimited } from '#policy/effective.ts'
import { policyOf } from './keyring-entry.ts'
import type { Observed } from './observed.ts'

type Outcome = Pick<Extract<ApiKeyCondition, { type: 'LimitsEnforceable' }>, 'reason' | 'message'>

/** Maximum number of models that a message names. */
const NAMED_MODELS = 5

export function limitsEnforceable(observed: Observed): Outcome {
  const { apiKey, entry, plan } = observed
  if (!isLimited(policyOf(apiKey, entry, plan)) && budgetsWithoutZone(apiKey.spec).length === 0)
    return priceMissing(observed) ?? { reason: 'Enforceable', message: 'The key has no limits and no budgets.' }
  return (
    tooOld(observed) ??
    spendHeldBack(observed) ??
    spendUncertain(observed) ??
    priceMissing(observed) ??
    outputUnbounded(observed) ?? { reason: 'Enforceable', message: 'Every gateway enforces all limits and budgets.' }
  )
}

/** Until the first poll of the gateways, the status stays as it is. */
function tooOld({ apiKey, gatewayLimits }: Observed): Outcome | undefined {
  const before = findCondition(apiKey.status?.conditions, 'LimitsEnforceable')?.reason
  const isTooOld = gatewayLimits === 'Unknown' ? before === 'GatewayTooOld' : gatewayLimits === 'TooOld'
  if (!isTooOld) return undefined
  const message = 'A gateway pod runs a version that cannot enforce limits. It refuses the key with 503. Update all gateway pods.'
  return { reason: 'GatewayTooOld', message }
}

function spendHeldBack({ heldBack }: Observed): Outcome | undefined {
  if (heldBack.length === 0) return undefined
  const message =
    `Redis counts more spend than calls can have caused, for ${heldBack.map((name) => `budget ${name}`).join(', ')}. The count is not made durable, ` +
    'and gateways refuse the key by it. Find who can write to Redis; then give the budget another name: it starts at zero.'
  return { reason: 'SpendHeldBack', message }
}

/** Names the period, so that a user can compare it with other records of the spend. */
function spendUncertain({ spendLoss }: Observed): Outcome | undefined {
  if (spendLoss === undefined) return undefined
  const period = `${rfc3339(spendLoss.fromMs)} and ${rfc3339(spendLoss.toMs)}`
  const message =
    `Redis lost the spend between ${period}. The operator restored the spend from the last checkpoint and from the ` +
    'memory of the gateway pods. Requests of gateway pods that ended in that period may be missing.'
  return { reason: 'SpendUncertain', message }
}

function priceMissing({ unpricedModels }: Observed): Outcome | undefined {
  if (unpricedModels.length === 0) return undefined
  const message =
    `A budget in Currency or a prepaid account cannot pay for models without a price, so requests for ${named(unpricedModels)} are refused. ` +
    'Set pricing in the ServedModel ("0" is a price), or remove the model from spec.models.'
  return { reason: 'PriceMissing', message }
}

/** The outcome of Ready for a key whose every call is refused. */
export function unpriced({
  isUnpriced,
  unpricedModels,
}: Observed): { readonly reason: 'PriceMissing'; readonly message: string } | undefined {
  if (!isUnpriced) return undefined
  const message =
    `No model that the key may call has a price, so every request (${named(unpricedModels)}) answers 402: a budget in Currency or a prepaid ` +
    'account pays for it. Set pricing in the ServedModel ("0" is a price).'
  return { reason: 'PriceMissing', message }
}

function outputUnbounded({ unboundedModels }: Observed): Outcome | undefined {
  if (unboundedModels.length === 0) return undefined
  const message =
    `Answers of ${named(unboundedModels)} have no known bound, so requests without max_tokens may overspend a budget. ` +
    'Set maxOutputTokens or contextTokens in the ServedModel.'
  return { reason: 'OutputUnbounded', message }
}

function named(models: readonly string[]): string {
  return `${models.slice(0, NAMED_MODELS).join(', ')}${models.length > NAMED_MODELS ? ' and others' : ''}`
}
