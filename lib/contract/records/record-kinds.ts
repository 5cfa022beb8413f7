/** Every kind of record in the projection. To add a kind, add the file of its schema and a row here. */
import { decodeAccountRecord, encodeAccountRecord } from './account-record.ts'
import { decodeKeyRecord, encodeKeyRecord } from './key-record.ts'
import { decodeModelRecord, encodeModelRecord } from './model-record.ts'
import { decodePlanRecord, encodePlanRecord } from './plan-record.ts'

/** The kinds, in the order in which a full load reads them. */
export const RECORDS = {
  plan: { decode: decodePlanRecord, encode: encodePlanRecord },
  account: { decode: decodeAccountRecord, encode: encodeAccountRecord },
  key: { decode: decodeKeyRecord, encode: encodeKeyRecord },
  model: { decode: decodeModelRecord, encode: encodeModelRecord },
}

/** Kind of a record. */
export type RecordKind = keyof typeof RECORDS

/** Lists the kinds that this build knows. The store may have others, of a newer operator. */
export function recordKinds(): readonly RecordKind[] {
  return Object.keys(RECORDS) as RecordKind[]
}

/** Makes one value for each kind. */
export function perKind<T>(make: (kind: RecordKind) => T): Record<RecordKind, T> {
  return Object.fromEntries(recordKinds().map((kind) => [kind, make(kind)])) as Record<RecordKind, T>
}
