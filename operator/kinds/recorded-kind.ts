/** Shared by the kinds Account and Plan, which handle their records alike: the texts of a start, the wait for gateways, and records without an object. */
import { findCondition } from '#api/condition-list.ts'
import type { Condition } from '#api/metadata.ts'
import { type KubeObject, type ObjectRef, uidOf } from '#kube/port.ts'
import type { OperatorContext } from './kind.ts'
import { itemKey } from '../loop/item.ts'
import { isSettled } from '../projection/programmed.ts'
import type { ProjectionChange } from '../projection/store.ts'
import type { AccountRecordKind } from '../accounts/account-records.ts'
import type { RecordState } from '../accounts/record-state.ts'

interface Recorded extends KubeObject {
  readonly status?: {
    readonly conditions?: readonly Condition[] | undefined
    readonly programmed?: Parameters<OperatorContext['acknowledgements']['expect']>[3]
  }
}

export class RecordedKind<T extends Recorded> {
  protected readonly context: OperatorContext
  readonly #record: AccountRecordKind

  constructor(context: OperatorContext, record: AccountRecordKind) {
    this.context = context
    this.#record = record
  }

  keeps(uid: string): boolean {
    return this.context.accounts.records.isUnreadable(uid)
  }

  isUnproven({ status }: T): boolean {
    return findCondition(status?.conditions, 'Programmed')?.status !== 'True'
  }

  orphaned(uid: string): void {
    if (this.context.accounts.records.textOf(uid) === undefined) this.context.projection.forget(this.#record, uid)
  }

  /** Waits for the gateways that have not acknowledged the record of an object. */
  protected expectGateways(kind: string, ref: ObjectRef, object: T, record: RecordState): void {
    if (record.projected === undefined || isSettled(record)) return
    const { acknowledgements } = this.context
    acknowledgements.expect(itemKey({ kind, ref }), record.projected.revision, uidOf(object), object.status?.programmed)
  }

  /** The records for a start: the durable ones, and those that the present objects want. */
  protected startRecords(present: Iterable<T>, textOf: (object: T) => string | undefined): readonly ProjectionChange[] {
    const { records } = this.context.accounts
    const kind = this.#record
    const texts = new Map(Array.from(records.all(kind), ({ uid }) => [uid, records.textOf(uid)]))
    for (const object of present) texts.set(uidOf(object), textOf(object))
    return [...texts].flatMap(([id, text]) => (text === undefined ? [] : [{ kind, op: 'put', id, text } as const]))
  }
}
