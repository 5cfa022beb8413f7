/** The condition LimitsEnforceable of an ApiKey. Pure. Its messages name no pod and few models, so that they change seldom. */
import { findCondition } from '../api/condition-list.ts'
import type { ApiKeyCondition } from '../api/conditions.ts'
import type { Interval } from '../ledger/spend-entry.ts'
import type { Observed } from './observed.ts'

type LimitsEnforceable = Extract<ApiKeyCondition, { type: 'LimitsEnforceable' }>
/** Most models that a message names. */
const NAMED_MODELS = 5

export function limitsEnforceable(observed: Observed): LimitsEnforceable {
  const type = 'LimitsEnforceable'
  const { limits, budgets = [] } = observed.apiKey.spec
  if (limits === undefined && budgets.length === 0) return { type, reason: 'Enforceable', message: 'The key has no limits and no budgets.' }
  return (
    tooOld(observed) ??
    spendUncertain(observed) ??
    priceMissing(observed) ??
    outputUnbounded(observed) ?? { type, reason: 'Enforceable', message: 'Every gateway holds them.' }
  )
}

/** Before the gateways have been asked, what the status says stays. */
function tooOld({ apiKey, gatewayLimits }: Observed): LimitsEnforceable | undefined {
  const before = findCondition(apiKey.status?.conditions, 'LimitsEnforceable')?.reason
  const isTooOld = gatewayLimits === 'Unknown' ? before === 'GatewayTooOld' : gatewayLimits === 'TooOld'
  if (!isTooOld) return undefined
  const message =
    'A gateway pod runs a version that does not hold limits. It refuses the key with 503, or admits it as it knew it before it had limits. Update all gateway pods.'
  return { type: 'LimitsEnforceable', reason: 'GatewayTooOld', message }
}

/** Says which time it was: whoever pays for the key can compare it with what else is known. */
function spendUncertain({ spendLoss }: Observed): LimitsEnforceable | undefined {
  return spendLoss && { type: 'LimitsEnforceable', reason: 'SpendUncertain', message: lossMessage(spendLoss) }
}

function lossMessage({ fromMs, toMs }: Interval): string {
  return (
    `Redis lost what was spent between ${seconds(fromMs)} and ${seconds(toMs)}. The spend was restored from the last checkpoint and from what ` +
    'gateways remember. Requests of gateway pods that ended in that time may be missing.'
  )
}

function seconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

function priceMissing({ unpricedModels }: Observed): LimitsEnforceable | undefined {
  if (unpricedModels.length === 0) return undefined
  const message =
    `A budget in Currency cannot count what has no price, so requests for ${named(unpricedModels)} are refused. ` +
    'Set pricing in the ServedModel ("0" is a price), or take the model out of spec.models.'
  return { type: 'LimitsEnforceable', reason: 'PriceMissing', message }
}

function outputUnbounded({ unboundedModels }: Observed): LimitsEnforceable | undefined {
  if (unboundedModels.length === 0) return undefined
  const message =
    `How long answers of ${named(unboundedModels)} can be is not known, so a budget may be overspent by requests that name no max_tokens themselves. ` +
    'Set maxOutputTokens or contextTokens in the ServedModel.'
  return { type: 'LimitsEnforceable', reason: 'OutputUnbounded', message }
}

function named(models: readonly string[]): string {
  return `${models.slice(0, NAMED_MODELS).join(', ')}${models.length > NAMED_MODELS ? ' and others' : ''}`
}
