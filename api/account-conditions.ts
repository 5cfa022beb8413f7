/** The conditions of Plan, Account and Credit. `conditions.ts` has those of the other kinds. */
import { type ConditionOf, type ConditionTable, no, unknown, yes } from './conditions.ts'

/** How far a record has come, without reasons that only keys have. */
const PROGRAMMED = (kind: string) =>
  ({
    presence: 'Always',
    meaning: `Every gateway pod has acknowledged the newest revision of the ${kind}.`,
    reasons: {
      Programmed: yes('Every gateway pod has acknowledged it.'),
      NotAccepted: no('See the condition Accepted.'),
      RecordsFull: no(
        'The Secrets of accounts and plans have no room for the newest edit: gateways apply the edit, but it would be lost together with the data of Redis. Delete Accounts that are not used; the operator retries by itself.',
      ),
      Pending: no('Some gateway pods have not acknowledged it yet.'),
      NoGateways: no('No gateway pod is running. Start one.'),
      StoreUnreachable: unknown('Redis does not answer. The operator continues by itself once Redis answers.'),
      Unconfirmed: no('Some gateway pods have not acknowledged it in time; the message names them.'),
    },
  }) as const

const INVALID_TIME_ZONE = no(
  'The timeZone of a budget does not exist; the message names it. The former budgets hold, and the rest of the edit acts. Write an IANA name.',
)

/** Conditions of a Plan. */
export const PLAN_CONDITIONS = {
  Ready: {
    presence: 'Always',
    meaning: 'The newest edit of the plan holds on every gateway.',
    reasons: {
      NotAccepted: no('See the condition Accepted.'),
      NotProgrammed: no('See the condition Programmed.'),
      Ready: yes('The plan holds on every gateway.'),
    },
  },
  Accepted: {
    presence: 'Always',
    meaning: 'The operator applies the manifest.',
    reasons: { InvalidTimeZone: INVALID_TIME_ZONE, Accepted: yes('The operator carries it out.') },
  },
  Programmed: PROGRAMMED('plan'),
  ModelsResolved: {
    presence: 'Always',
    meaning: 'Every entry of models matches a ServedModel. Only a warning: a model may come later.',
    reasons: {
      ModelNotFound: no('No ServedModel matches some entries; the message names them. Correct them, or create the models.'),
      Resolved: yes('Every entry matches a ServedModel.'),
    },
  },
} as const satisfies ConditionTable

/** Conditions of an Account. */
export const ACCOUNT_CONDITIONS = {
  Ready: {
    presence: 'Always',
    meaning: 'The keys of the account work, as far as the account decides.',
    reasons: {
      NotAccepted: no('See the condition Accepted.'),
      Suspended: no('spec.state is Suspended: all keys of the account answer 401. Set it to Active to let the same keys work again.'),
      NotProgrammed: no('See the condition Programmed.'),
      BalanceExhausted: no('See the condition BalanceExhausted.'),
      BudgetExhausted: no('See the condition BudgetExhausted.'),
      Ready: yes('The account holds on every gateway.'),
    },
  },
  Accepted: {
    presence: 'Always',
    meaning: 'The operator applies the manifest.',
    reasons: {
      NameUsed: no(
        'An Account that was deleted had the name, and its spend belongs to the name. Keys answer 401. To continue its books, set the annotation that the message names; otherwise choose another name.',
      ),
      BooksMissing: no(
        'The account was accepted before, and its books are gone, so its spend is unknown. Gateways answer 503 for its keys. Restore the Secrets hg-balances-*, or set the annotation that the message names to begin at zero.',
      ),
      BooksDamaged: no(
        'A Secret hg-balances-* or hg-credits-* with books of the account is damaged or lost, so its balance is unknown. Gateways answer 503 for its keys. The operator takes the spend from Redis if Redis has all of it; otherwise restore the Secret from a backup.',
      ),
      BooksUnreadable: unknown(
        'A newer version of the operator wrote the books of the account. They are left as they are. Update the operator.',
      ),
      PlanNotFound: no(
        'There is no Plan of the name in planRef. The former plan of the account goes on to hold; without one the keys answer 401. Create the Plan, or name another.',
      ),
      InvalidTimeZone: INVALID_TIME_ZONE,
      Pending: no('The books of the account are being opened.'),
      Accepted: yes('The operator carries it out.'),
    },
  },
  Programmed: PROGRAMMED('account'),
  BalanceExhausted: {
    presence: 'WhenTrue',
    meaning: 'The account is Prepaid, and less than 0.01 of its balance is left.',
    reasons: { BalanceExhausted: yes('All keys answer 402 as soon as nothing is left, until a Credit raises the balance.') },
  },
  BudgetExhausted: {
    presence: 'WhenTrue',
    meaning: 'A budget that all keys of the account share is used up.',
    reasons: {
      BudgetExhausted: yes(
        'All keys answer 402 until the window of the budget ends or its amount is raised; the message names the budgets.',
      ),
    },
  },
  KeyLimitReached: {
    presence: 'WhenTrue',
    meaning: 'No further key is issued.',
    reasons: { KeyLimitReached: yes('The account has as many keys as its plan allows, without revoked and expired ones.') },
  },
  SpendHeldBack: {
    presence: 'WhenTrue',
    meaning: 'Redis counts more spend for the account than its calls can have caused. The operator does not make that spend durable.',
    reasons: {
      SpendHeldBack: yes(
        'The keys of the account are refused. Find the program that can write to Redis. Then give the budget that the message names another name, or the account a Credit of type Adjustment.',
      ),
    },
  },
  SpendUncertain: {
    presence: 'WhenTrue',
    meaning: 'Redis had lost spend of the account.',
    reasons: { SpendUncertain: yes('The message names the period. Shown for 24 hours.') },
  },
} as const satisfies ConditionTable

/** Conditions of a Credit. */
export const CREDIT_CONDITIONS = {
  Booked: {
    presence: 'Always',
    meaning: 'The amount counts in the balance of the account.',
    reasons: {
      IdUsed: no(
        'The books have the name of the Credit with another account or another amount, and a name counts once. This Credit does not count. Create another one with a name of its own.',
      ),
      AccountNotFound: no(
        'No account of the name has books, or they belong to another Account than accountRef.uid says. Nothing is booked. Create the Account; the operator then books the amount by itself. Delete the Credit if the amount should not count.',
      ),
      BooksFull: no(
        'The Secrets hg-credits-* have no room for another Credit, so nothing is booked. The operator retries by itself; the administrator of the installation has to make room.',
      ),
      Pending: no('The amount does not count yet; the message says what the operator waits for. It continues by itself.'),
      Booked: yes('The amount is in the books, and counts once and for ever, also after the Credit was deleted.'),
    },
  },
} as const satisfies ConditionTable

/** A condition of a Plan before its status and times are filled in. */
export type PlanCondition = ConditionOf<typeof PLAN_CONDITIONS>
/** A condition of an Account before its status and times are filled in. */
export type AccountCondition = ConditionOf<typeof ACCOUNT_CONDITIONS>
/** A condition of a Credit before its status and times are filled in. */
export type CreditCondition = ConditionOf<typeof CREDIT_CONDITIONS>
