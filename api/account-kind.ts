/** The definition of the kind Account. */
import { ACCOUNT_CONDITIONS } from './account-conditions.ts'
import { type Account, accountSpec, accountStatus } from './account.ts'
import { AGE, type ApiKind, column, READY_REASON, READY_STATUS } from './kind.ts'
import { selectorPlaces } from './label-selector.ts'
import { budgetRules, limitsRules } from './limits.ts'
import { accounts } from './resources.ts'
import { type RulePlace, rulePlace } from './rule.ts'

const ACCOUNT_RULES: readonly RulePlace<Account>[] = [
  ...selectorPlaces<Account>('spec.namespaces', (account) => account.spec.namespaces),
  rulePlace('spec.limits', (account) => [account.spec.limits], limitsRules),
  rulePlace('spec.budgets[]', (account) => account.spec.budgets, budgetRules),
]

/** Account: whose keys these are. */
export const accountKind: ApiKind<Account> = {
  resource: accounts,
  shortName: 'acct',
  description: 'Whose keys these are, and on which plan. All keys of an account share its limits, its budgets and its balance.',
  spec: accountSpec,
  specDescription: 'The plan of the account, its state, and what its keys share.',
  status: accountStatus,
  rules: ACCOUNT_RULES,
  conditions: ACCOUNT_CONDITIONS,
  columns: [
    column('Ready', READY_STATUS, 'Whether the keys work, as far as the account decides.'),
    column('Reason', READY_REASON, 'Reason of the condition Ready.'),
    column('Plan', '.spec.planRef.name', 'The plan of the account.'),
    column('Keys', '.status.activeKeyCount', 'ApiKeys that are neither revoked nor expired.', { type: 'integer' }),
    column('Balance', '.status.balance.amount', 'What the account has left, in the currency of the installation.'),
    column('Spent', '.status.spent', 'All that its keys have ever spent, in the same currency.'),
    AGE,
    column('Last-Used', '.status.lastUsedTime', 'Time since a key was last used, to the hour.', { type: 'date', wide: true }),
  ],
  selectable: ['.spec.state', '.spec.planRef.name'],
  finalizer: undefined,
  recordKind: 'account',
}
