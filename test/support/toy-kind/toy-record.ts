/** The record of a Toy, as its file and its row in the table of records would be. */
import { z } from 'zod'
import { namespaceField, recordCodec, recordFields, type RecordOf } from '#contract/records/format.ts'
import { type RecordKind, RECORDS } from '#contract/records/record-kinds.ts'

const toyBody = z.object({ ...recordFields, namespace: namespaceField, color: z.enum(['Red', 'Blue']) })

export type ToyRecord = RecordOf<typeof toyBody>

export const toyCodec = recordCodec(toyBody)

/** The kind of the record. Its row is added here, because the table of a program has no kinds of tests. */
export const TOY_RECORD = 'toy' as RecordKind
Object.assign(RECORDS, { [TOY_RECORD]: toyCodec })
