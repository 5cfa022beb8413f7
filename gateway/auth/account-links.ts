/**
 * Links a key with its account and the plan of the account. A record that changes replaces one object here, so an edit of a plan or of an
 * account costs the same for any number of keys: each key is linked again with its next request.
 */
import type { AccountRecord } from '#contract/records/account-record.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import { balanceOf, effective, isLimited, type LimitSubject, sharedPolicy } from '#policy/effective.ts'
import { type GatewayError, sharedError } from '../errors.ts'
import type { Caller } from './key-table.ts'
import { ACCOUNT } from './refusals.ts'

interface Records<R> {
  get(uid: string): R | undefined
}

interface Link {
  readonly account: AccountRecord
  readonly plan: PlanRecord
}

interface Linked extends Link {
  readonly caller: Caller
}

interface Shared extends Link {
  readonly subject: LimitSubject | undefined
}

export class AccountLinks {
  readonly #accounts: Records<AccountRecord>
  readonly #plans: Records<PlanRecord>
  readonly #linked = new WeakMap<Caller, Linked>()
  readonly #shared = new WeakMap<AccountRecord, Shared>()
  /** One array for keys with equal lists and one plan, because their compiled form and their list of models belong to the array. */
  readonly #lists = new WeakMap<KeyRecord['models'], WeakMap<PlanRecord['models'], KeyRecord['models']>>()

  constructor(accounts: Records<AccountRecord>, plans: Records<PlanRecord>) {
    this.#accounts = accounts
    this.#plans = plans
  }

  /**
   * Adds what account and plan say to a key.
   * @returns the Caller itself for a key without an account; row 4 for a refused account; row 24 while a record is missing, because the
   * gateway then knows neither the models nor the limits of the key
   */
  link(caller: Caller): Caller | GatewayError {
    const { account: uid } = caller.record
    if (uid === undefined) return caller
    const account = this.#accounts.get(uid)
    if (account === undefined) return sharedError('notReady')
    if (account.state !== 'Active') return ACCOUNT[account.state]
    if (account.plan === null) return ACCOUNT.WithoutPlan
    const plan = this.#plans.get(account.plan)
    if (plan === undefined) return sharedError('notReady')
    const known = this.#linked.get(caller)
    if (known?.account === account && known.plan === plan) return known.caller
    const linked = { account, plan, caller: this.#callerOf(caller, { account, plan }) }
    this.#linked.set(caller, linked)
    return linked.caller
  }

  #callerOf(caller: Caller, link: Link): Caller {
    const { record } = caller
    const { models: _, ...policy } = effective(record, link.plan)
    const own: readonly LimitSubject[] = isLimited(policy) ? [{ uid: record.uid, whose: 'key', ...policy }] : []
    const shared = this.#subjectOf(link)
    return {
      ...caller,
      record: { ...record, models: this.#listsOf(record.models, link.plan.models) },
      subjects: shared ? [...own, shared] : own,
      account: link.account.ledger,
    }
  }

  /** What the keys of the account share. An account with a balance has a subject without any limit too: its spend is counted. */
  #subjectOf({ account, plan }: Link): LimitSubject | undefined {
    const known = this.#shared.get(account)
    if (known?.plan === plan) return known.subject
    const policy = sharedPolicy(account, plan)
    const balance = balanceOf(account)
    const isSubject = balance !== undefined || isLimited(policy)
    const subject: LimitSubject | undefined = isSubject ? { uid: account.ledger, whose: 'account', ...policy, balance } : undefined
    this.#shared.set(account, { account, plan, subject })
    return subject
  }

  #listsOf(own: KeyRecord['models'], ofPlan: PlanRecord['models']): KeyRecord['models'] {
    const byPlan = this.#lists.get(own) ?? new WeakMap<PlanRecord['models'], KeyRecord['models']>()
    const lists = byPlan.get(ofPlan) ?? [...own, ofPlan]
    this.#lists.set(own, byPlan.set(ofPlan, lists))
    return lists
  }
}
