/** The definition of one kind of Headgate's API. CRD, reference page, validation and the programs' tables are derived from it. */
import type { z } from 'zod'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import type { KubeObject, Resource } from '#kube/port.ts'
import type { ConditionTable } from './conditions.ts'
import type { RulePlace } from './rule.ts'

/** A column of `kubectl get`; `wide` ones show with `-o wide` only. */
export interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date'
  readonly jsonPath: string
  readonly description: string
  readonly wide?: boolean
}

/** Definition of one kind. `T` types the object as the API server returns it. */
export interface ApiKind<T extends KubeObject = KubeObject> {
  /** Group, version, kind, plural and scope. */
  readonly resource: Resource<T>
  /** undefined = none. */
  readonly shortName: string | undefined
  readonly description: string
  readonly spec: z.ZodType
  readonly specDescription: string
  readonly status: z.ZodType
  readonly rules: readonly RulePlace<T>[]
  readonly conditions: ConditionTable
  readonly columns: readonly Column[]
  /** JSON paths that `kubectl get --field-selector` accepts. */
  readonly selectable: readonly string[]
  /** Finalizer that the operator puts on every object of the kind; undefined = none. */
  readonly finalizer: string | undefined
  /** Records that the operator writes to the projection for the kind; undefined = none. */
  readonly recordKind: RecordKind | undefined
}

/** @returns whether the object is of this kind; its spec is valid then, since the schema of the kind has validated it */
export function isOfKind<T extends KubeObject>({ resource }: Pick<ApiKind<T>, 'resource'>, object: KubeObject | undefined): object is T {
  return object?.kind === resource.kind
}

/** A column with text, unless `more` says otherwise. */
export function column(name: string, jsonPath: string, description: string, more: Partial<Pick<Column, 'type' | 'wide'>> = {}): Column {
  return { name, type: 'string', jsonPath, description, ...more }
}

/** Status of the condition Ready, for a column. */
export const READY_STATUS = '.status.conditions[?(@.type=="Ready")].status'
/** Reason of the condition Ready, for a column. */
export const READY_REASON = '.status.conditions[?(@.type=="Ready")].reason'
/** The column `Age`, which every kind of Kubernetes has. */
export const AGE = column('Age', '.metadata.creationTimestamp', 'Time since the object was created.', { type: 'date' })
