/** What the ledger asks about keys: their budgets, and whether a key that it knows may exist. */
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { effective } from '#policy/effective.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import type { SubjectKind } from '../../books/subject-ledger.ts'
import { findByUid } from '../kind.ts'
import type { ApiKeyDeps } from './kind.ts'

export function keySubjects(deps: ApiKeyDeps): SubjectKind {
  const { keyring, accounts, shownUsage, enqueueKey } = deps
  const newest = (uid: string): KeyringEntry | undefined => keyring.pending(uid) ?? keyring.get(uid)
  return {
    uids: () => Array.from(keyring.entries(), ({ uid }) => uid),
    budgetsOf: (uid) => budgetsOf(newest(uid), accounts),
    mayExist: (uid) => {
      const entry = newest(uid)
      if (entry?.deletedMs === null || findByUid(uid, deps.apiKeys)) return true
      return keyring.isUnreadable(uid) || keyring.isDamaged(uid) || (entry === undefined && mayBeLost(uid, deps))
    },
    onRead: (uid, usage) => shownUsage.read(uid, usage),
    onDoubt: (uid) => void enqueueKey(uid, 'background'),
  }
}

/** Whether the keyring may have lost a key: Redis may have its record, or its ApiKey may be in a namespace that is not synced. */
function mayBeLost(uid: string, { kept, apiKeys, settings }: ApiKeyDeps): boolean {
  return kept.mayHave(uid) || !settings.watchNamespaces.every((namespace) => apiKeys.isSynced(namespace))
}

/**
 * Budgets of a key. A key with an account always has a list, perhaps an empty one, so that its budgets are started with it: a plan may add some
 * at any time, for thousands of keys at once.
 */
function budgetsOf(entry: KeyringEntry | undefined, accounts: Accounts): readonly BudgetRecord[] | undefined {
  if (entry?.deletedMs !== null) return undefined
  return entry.account === undefined ? entry.budgets : effective(entry, accounts.planOfAccount(entry.account)).budgets
}
