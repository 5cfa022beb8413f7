import type { KeyRecord } from '#contract/records/key-record.ts'
import { effective } from '#policy/effective.ts'
import type { LimitSubject } from './ledger.ts'

/** Subjects of records with limits, so that a call makes no new subject. */
const subjects = new WeakMap<KeyRecord, LimitSubject>()

/** Finds the subject whose limits apply to a key. @returns undefined for a key without limits and budgets, whose calls ask no ledger */
export function limitSubject(record: KeyRecord): LimitSubject | undefined {
  if (record.limits === undefined && record.budgets === undefined) return undefined
  const known = subjects.get(record)
  if (known) return known
  const made: LimitSubject = { uid: record.uid, whose: 'key', ...effective(record) }
  subjects.set(record, made)
  return made
}
