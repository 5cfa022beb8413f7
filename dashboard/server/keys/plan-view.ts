/** The plan of an account as pages show it. Pure. */
import type { Account } from '#api/account.ts'
import { accountPolicy, planPolicy } from '#api/account-policy.ts'
import { findCondition } from '#api/condition-list.ts'
import type { Plan } from '#api/plan.ts'
import type { ServedModel } from '#api/served-model.ts'
import { listAdmits, nameList } from '#policy/model-access.ts'
import { effective, sharedPolicy } from '#policy/effective.ts'
import type { ModelView, PlanView } from '../page-data/keys.ts'
import { budgetView } from './budget-view.ts'
import { LIMIT_NAMES } from './key-view.ts'

export interface PlanFacts {
  readonly account: Account
  readonly plan: Plan | undefined
  /** All of the cluster. */
  readonly models: Iterable<ServedModel>
  /** Namespace of the keys. */
  readonly namespace: string
  readonly currency: string
  /** ms since 1970 */
  readonly nowMs: number
}

export function planView({ account, plan, models, namespace, currency, nowMs }: PlanFacts): PlanView {
  const policy = plan && planPolicy(plan.spec)
  const shared = sharedPolicy(accountPolicy(account.spec), policy)
  const ofEach = effective({ models: [] }, policy)
  return {
    name: account.spec.planRef.name,
    displayName: plan?.spec.displayName,
    most: plan?.spec.maxKeys,
    models: plan === undefined ? [] : modelsOf(plan, models, namespace),
    limits: LIMIT_NAMES.map((limit) => ({
      limit,
      ceiling: policy?.keyCeiling?.[limit],
      default: ofEach.limits[limit],
      shared: shared.limits[limit],
      sharedOwner: shared.limitedBy[limit],
    })),
    budgets: [
      ...ofEach.budgets.map((budget) => budgetView(budget, { usage: undefined, isShared: false, nowMs })),
      ...shared.budgets.map((budget) => budgetView(budget, { usage: account.status?.usage, isShared: true, nowMs })),
    ],
    ttl: plan?.spec.perKey?.ttlSeconds ?? {},
    currency,
  }
}

/** Served models that the plan admits and that keys of the namespace may call, by served name. The oldest has the name. */
function modelsOf(plan: Plan, models: Iterable<ServedModel>, namespace: string): readonly ModelView[] {
  const list = nameList(plan.spec.models)
  const found = new Map<string, ServedModel>()
  for (const model of [...models].toSorted(byAge)) {
    const names = [nameOf(model), ...(model.spec.aliases ?? [])]
    if (isOpenTo(model, namespace) && names.some((name) => listAdmits(list, name)) && !found.has(nameOf(model)))
      found.set(nameOf(model), model)
  }
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, model]) => modelView(name, model))
}

function byAge({ metadata: a }: ServedModel, { metadata: b }: ServedModel): number {
  return (a.creationTimestamp ?? '') < (b.creationTimestamp ?? '') ? -1 : 1
}

function nameOf({ metadata, spec }: ServedModel): string {
  return spec.servedName ?? metadata.name
}

function isOpenTo(model: ServedModel, namespace: string): boolean {
  if (model.metadata.namespace === namespace) return true
  const mayPublish = findCondition(model.status?.conditions, 'Accepted')?.reason !== 'PublishingNotAllowed'
  return mayPublish && admits(model.spec.allowedNamespaces, namespace)
}

/** A selector of other labels than the name cannot be answered here: the dashboard reads no Namespaces, so such a model is left out. */
function admits({ from, selector }: ServedModel['spec']['allowedNamespaces'], namespace: string): boolean {
  const labels = Object.entries(selector?.matchLabels ?? {})
  const isByName = labels.length > 0 && (selector?.matchExpressions ?? []).length === 0
  if (from !== 'Selector') return from === 'All'
  return isByName && labels.every(([label, value]) => label === 'kubernetes.io/metadata.name' && value === namespace)
}

function modelView(name: string, { spec: { pricing, contextTokens } }: ServedModel): ModelView {
  const price = pricing && {
    input: pricing.inputPerMillion,
    cachedInput: pricing.cachedInputPerMillion,
    cacheWrite: pricing.cacheWritePerMillion,
    output: pricing.outputPerMillion,
    perRequest: pricing.perRequest,
  }
  return { name, price, contextTokens }
}
