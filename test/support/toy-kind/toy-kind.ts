/** A kind that exists only in tests, with the least that a kind of the API with a record and a finalizer needs. */
import { z } from 'zod'
import { mapOf, text } from '#api/bounded.ts'
import type { ConditionTable } from '#api/conditions.ts'
import { AGE, type ApiKind, READY_STATUS } from '#api/kind.ts'
import { namespaceField, recordCodec, recordFields } from '#contract/records/format.ts'
import { type RecordKind, RECORDS } from '#contract/records/record-kinds.ts'
import { API_GROUP, API_VERSION, condition } from '#api/metadata.ts'
import { type RulePlace, rulePlace } from '#api/rule.ts'
import type { KubeObject } from '#kube/port.ts'

export const toySpec = z.strictObject({
  color: z.enum(['Red', 'Blue']).describe('Color of the toy.').default('Red'),
  pieces: z.int().min(1).max(100).describe('Number of pieces.'),
  sparePieces: z.int().min(0).max(100).describe('Pieces that may get lost.').default(0),
  label: text(20).describe('Text on the toy.').optional(),
})

export const toyStatus = z.object({
  observedGeneration: z.int().min(0).describe('The metadata.generation that this status describes.').optional(),
  conditions: mapOf(condition, 'type', { max: 4 }).describe('Ready.').optional(),
})

export interface Toy extends KubeObject {
  readonly spec: z.output<typeof toySpec>
  readonly status?: z.infer<typeof toyStatus>
}

const TOY_RULES: readonly RulePlace<Toy>[] = [
  rulePlace('spec', (toy) => [toy.spec], [
    {
      id: 'fewer-spares',
      cel: '!has(self.sparePieces) || self.sparePieces <= self.pieces',
      field: '.sparePieces',
      reason: 'sparePieces is above pieces',
      remedy: 'lower sparePieces or raise pieces',
      holds: (self) => self.sparePieces <= self.pieces,
    },
  ]),
]

export const TOY_CONDITIONS = {
  Ready: {
    presence: 'Always',
    meaning: 'Children can play with the toy.',
    reasons: {
      Broken: { status: 'False', meaning: 'A piece is missing. Buy another toy.' },
      Ready: { status: 'True', meaning: 'All pieces are there.' },
    },
  },
} as const satisfies ConditionTable

/** The definition of the kind Toy: its row in the table of the API. */
const toyBody = z.object({ ...recordFields, namespace: namespaceField, color: z.enum(['Red', 'Blue']) })

export const toyCodec = recordCodec(toyBody)

/** The kind of the record. */
export const TOY_RECORD = 'toy' as RecordKind

/**
 * Adds the row of the record, since the table of a program has no kinds of tests.
 * @returns removes the row: the next test files of the process load projections without toys
 */
export function addToyRecord(): () => void {
  Object.assign(RECORDS, { [TOY_RECORD]: toyCodec })
  return () => void Reflect.deleteProperty(RECORDS, TOY_RECORD)
}

export const toyKind: ApiKind<Toy> = {
  resource: { group: API_GROUP, version: API_VERSION, plural: 'toys', kind: 'Toy', namespaced: true },
  shortName: 'ty',
  description: 'A toy of a test.',
  spec: toySpec,
  specDescription: 'What the toy is made of.',
  status: toyStatus,
  rules: TOY_RULES,
  conditions: TOY_CONDITIONS,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: READY_STATUS, description: 'Whether children can play with it.' },
    AGE,
    { name: 'Color', type: 'string', jsonPath: '.spec.color', description: 'Its color.', wide: true },
  ],
  selectable: ['.spec.color'],
  finalizer: 'headgate.dev/put-away',
  recordKind: TOY_RECORD,
}
