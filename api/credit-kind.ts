/** The definition of the kind Credit. */
import { isDeepStrictEqual } from 'node:util'
import { CREDIT_CONDITIONS } from './account-conditions.ts'
import { type Credit, creditSpec, type CreditSpec, creditStatus } from './credit.ts'
import { SIGNED_AMOUNT } from './decimal-amount.ts'
import { AGE, type ApiKind, column } from './kind.ts'
import { shownText } from './manifest-error.ts'
import { fourDigitYear } from './metadata.ts'
import { credits } from './resources.ts'
import { type Rule, type RulePlace, rulePlace } from './rule.ts'

const amountRules: readonly Rule<string>[] = [
  {
    id: 'signed-amount',
    cel: `self.matches(r'${SIGNED_AMOUNT}')`,
    reason: 'amount is not a decimal number with at most 9 digits before the point and 6 after it',
    celValues: `'"' + self + '"'`,
    remedy: 'write it like "25.00", or "-25.00" to take money back, without exponent or separators',
    values: shownText,
    holds: (self) => new RegExp(SIGNED_AMOUNT).test(self),
  },
  {
    id: 'amount-not-zero',
    cel: `!self.matches(r'${SIGNED_AMOUNT}') || self.matches('[1-9]')`,
    reason: 'amount is 0 and would change nothing',
    remedy: 'write the amount of the payment',
    holds: (self) => !new RegExp(SIGNED_AMOUNT).test(self) || /[1-9]/.test(self),
  },
]

/** The spec as CEL compares it: two ways to write one time are equal. */
function compared(spec: CreditSpec): object {
  return { ...spec, time: spec.time === undefined ? undefined : Date.parse(spec.time) }
}

const CREDIT_RULES: readonly RulePlace<Credit>[] = [
  rulePlace('spec', (credit) => [credit.spec], [
    {
      id: 'credit-immutable',
      cel: 'self == oldSelf',
      reason: 'spec of a Credit cannot be changed, because its amount is booked once',
      remedy: 'restore the old spec; to correct a Credit, create another one of type Adjustment',
      keeps: (self, old) => isDeepStrictEqual(compared(self), compared(old)),
    },
  ]),
  rulePlace('spec.amount', (credit) => [credit.spec.amount], amountRules),
  rulePlace('spec.time', (credit) => [credit.spec.time], [fourDigitYear('time')]),
]

/** Credit: one movement of money of an account. */
export const creditKind: ApiKind<Credit> = {
  resource: credits,
  shortName: undefined,
  description:
    'One movement of money of an account: a payment, a gift, or money that is taken back. Its name is the id of the payment and counts once, for ever: deleting a Credit takes no money back, and creating it again adds none.',
  spec: creditSpec,
  specDescription: 'The account and the amount. It cannot be changed.',
  status: creditStatus,
  rules: CREDIT_RULES,
  conditions: CREDIT_CONDITIONS,
  columns: [
    column('Account', '.spec.accountRef.name', 'The account whose balance changes.'),
    column('Amount', '.spec.amount', 'Amount in the currency of the installation; negative where money is taken back.'),
    column('Type', '.spec.type', 'Why the balance changes.'),
    column('Booked', '.status.conditions[?(@.type=="Booked")].status', 'Whether the amount counts.'),
    AGE,
    column('Reason', '.status.conditions[?(@.type=="Booked")].reason', 'Reason of the condition Booked.', { wide: true }),
    column('Reference', '.spec.reference', 'Id of the payment at its provider, or a note.', { wide: true }),
  ],
  selectable: ['.spec.accountRef.name'],
  finalizer: undefined,
  recordKind: undefined,
}
