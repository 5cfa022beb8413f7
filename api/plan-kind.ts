/** The definition of the kind Plan. */
import { PLAN_CONDITIONS } from './account-conditions.ts'
import { AGE, type ApiKind, column, READY_REASON, READY_STATUS } from './kind.ts'
import { budgetRules, limitsRules } from './limits.ts'
import { modelsTotal } from './model-list.ts'
import { type Plan, planSpec, planStatus } from './plan.ts'
import { plans } from './resources.ts'
import { type RulePlace, rulePlace } from './rule.ts'

type PerKey = NonNullable<Plan['spec']['perKey']>
type Ttl = NonNullable<PerKey['ttlSeconds']>

const PLAN_RULES: readonly RulePlace<Plan>[] = [
  rulePlace('spec.models', (plan) => [plan.spec.models], [modelsTotal]),
  rulePlace<Plan, Ttl>('spec.perKey.ttlSeconds', (plan) => [plan.spec.perKey?.ttlSeconds], [
    {
      id: 'default-below-ceiling',
      cel: '!has(self.default) || !has(self.ceiling) || self.default <= self.ceiling',
      field: '.default',
      reason: 'default is above ceiling',
      remedy: 'lower default or raise ceiling',
      holds: (self) => (self.default ?? 0) <= (self.ceiling ?? Infinity),
    },
  ]),
  rulePlace('spec.perKey.limits.default', (plan) => [plan.spec.perKey?.limits?.default], limitsRules),
  rulePlace('spec.perKey.limits.ceiling', (plan) => [plan.spec.perKey?.limits?.ceiling], limitsRules),
  rulePlace('spec.perKey.budgets[]', (plan) => plan.spec.perKey?.budgets, budgetRules),
  rulePlace('spec.perAccount.limits', (plan) => [plan.spec.perAccount?.limits], limitsRules),
  rulePlace('spec.perAccount.budgets[]', (plan) => plan.spec.perAccount?.budgets, budgetRules),
]

/** Plan: what the keys of its accounts may use. */
export const planKind: ApiKind<Plan> = {
  resource: plans,
  shortName: 'pln',
  description: 'What the keys of its accounts may name and use. One edit holds for all of them within a second.',
  spec: planSpec,
  specDescription: 'Models and limits, for each key and for each account.',
  status: planStatus,
  rules: PLAN_RULES,
  conditions: PLAN_CONDITIONS,
  columns: [
    column('Ready', READY_STATUS, 'Whether the plan holds on every gateway.'),
    column('Reason', READY_REASON, 'Reason of the condition Ready.'),
    column('Accounts', '.status.accountCount', 'Accounts of the plan.', { type: 'integer' }),
    column('Keys', '.status.keyCount', 'ApiKeys of these accounts.', { type: 'integer' }),
    AGE,
  ],
  selectable: [],
  finalizer: undefined,
  recordKind: 'plan',
}
