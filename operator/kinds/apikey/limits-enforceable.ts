/** Derives the condition LimitsEnforceable of an ApiKey. Its messages name no pod and few models, so that they rarely change. Pure. */
import { rfc3339 } from '#contract/values/rfc3339.ts'
import { findCondition } from '#api/condition-list.ts'
import type { ApiKeyCondition } from '#api/conditions.ts'
import { budgetsWithoutZone } from '#api/key-policy.ts'
import type { Interval } from '../../shards/spend-entry.ts'
import { isLimited } from '#policy/effective.ts'
import { policyOf } from './keyring-entry.ts'
import type { Observed } from './observed.ts'

type LimitsEnforceable = Extract<ApiKeyCondition, { type: 'LimitsEnforceable' }>
/** Most models that a message names. */
const NAMED_MODELS = 5

export function limitsEnforceable(observed: Observed): LimitsEnforceable {
  const type = 'LimitsEnforceable'
  const { apiKey, entry } = observed
  if (!isLimited(policyOf(apiKey, entry)) && budgetsWithoutZone(apiKey.spec).length === 0)
    return { type, reason: 'Enforceable', message: 'The key has no limits and no budgets.' }
  return (
    tooOld(observed) ??
    spendUncertain(observed) ??
    priceMissing(observed) ??
    outputUnbounded(observed) ?? { type, reason: 'Enforceable', message: 'Every gateway enforces all limits and budgets.' }
  )
}

/** Until the first poll of the gateways, the status stays as it is. */
function tooOld({ apiKey, gatewayLimits }: Observed): LimitsEnforceable | undefined {
  const before = findCondition(apiKey.status?.conditions, 'LimitsEnforceable')?.reason
  const isTooOld = gatewayLimits === 'Unknown' ? before === 'GatewayTooOld' : gatewayLimits === 'TooOld'
  if (!isTooOld) return undefined
  const message =
    'A gateway pod runs a version that cannot enforce limits. It refuses the key with 503, or admits it with the last record without limits. Update all gateway pods.'
  return { type: 'LimitsEnforceable', reason: 'GatewayTooOld', message }
}

/** Names the period, so that a user can compare it with other records of the spend. */
function spendUncertain({ spendLoss }: Observed): LimitsEnforceable | undefined {
  return spendLoss && { type: 'LimitsEnforceable', reason: 'SpendUncertain', message: lossMessage(spendLoss) }
}

function lossMessage({ fromMs, toMs }: Interval): string {
  return (
    `Redis lost the spend between ${rfc3339(fromMs)} and ${rfc3339(toMs)}. The operator restored the spend from the last checkpoint and from the ` +
    'memory of the gateway pods. Requests of gateway pods that ended in that period may be missing.'
  )
}

function priceMissing({ unpricedModels }: Observed): LimitsEnforceable | undefined {
  if (unpricedModels.length === 0) return undefined
  const message =
    `A budget in Currency cannot count models without a price, so requests for ${named(unpricedModels)} are refused. ` +
    'Set pricing in the ServedModel ("0" is a price), or remove the model from spec.models.'
  return { type: 'LimitsEnforceable', reason: 'PriceMissing', message }
}

function outputUnbounded({ unboundedModels }: Observed): LimitsEnforceable | undefined {
  if (unboundedModels.length === 0) return undefined
  const message =
    `Answers of ${named(unboundedModels)} have no known bound, so requests without max_tokens may overspend a budget. ` +
    'Set maxOutputTokens or contextTokens in the ServedModel.'
  return { type: 'LimitsEnforceable', reason: 'OutputUnbounded', message }
}

function named(models: readonly string[]): string {
  return `${models.slice(0, NAMED_MODELS).join(', ')}${models.length > NAMED_MODELS ? ' and others' : ''}`
}
