/** The data set of the store: take-over by a new leader, the check for a lost or replaced one, and the rebuild under a new epoch. */
import { randomUUID } from 'node:crypto'
import { PROJECTION_SCHEMA } from '#contract/records/format.ts'
import type { ProjectionMeta } from '#contract/records/revision-log.ts'
import type { Leadership } from '../operator-deps.ts'
import { foreignInstallation, isForeign, refuseForeign } from './foreign-store.ts'
import type { ProjectionChange, ProjectionStore, WriteOutcome } from './store.ts'

const WENT_BACK = 'the store went back to an older state'

export interface DataSetDeps extends Leadership {
  readonly store: ProjectionStore
  /** Called when the store was prepared for this leader. */
  readonly onPrepared: () => Promise<void>
  /** Called before these changes are written, so that a gateway that learns a record finds its data. In a rebuild: all records. */
  readonly beforeWrite: (changes: readonly ProjectionChange[]) => Promise<void>
  /** Identity of this installation, durable beside the keyring. */
  readonly installation: () => string
  /** Replace the projection of another installation or of a newer layout. */
  readonly takesOver: boolean
}

/** Epoch and revision of the data set that this leader writes. */
export class DataSet {
  readonly #deps: DataSetDeps
  #epoch = ''
  #revision = 0
  /** Fence that this leader itself has written to the store. */
  #claimed: number | undefined

  constructor(deps: DataSetDeps) {
    this.#deps = deps
  }

  /** '' before the first contact. */
  get epoch(): string {
    return this.#epoch
  }

  get revision(): number {
    return this.#revision
  }

  /** @param floor newest revision that the keyring knows: a store below it has lost data */
  startAt(floor: number): void {
    this.#revision = Math.max(this.#revision, floor)
  }

  /** First contact: adopts a data set that is ours and up to date. @returns why it must be rebuilt otherwise @throws ForeignStore */
  async takeOver(): Promise<string | undefined> {
    const meta = await this.#prepared()
    if (meta === undefined) return 'the store is empty'
    const foreign = this.#foreign(meta)
    if (foreign !== undefined) return foreign
    if (meta.revision < this.#revision) return 'the store is older than the keyring'
    await this.#claim(meta)
    // After a failover to a lagging replica, gateways may have applied more than the store holds; their acknowledgements would then prove too
    // much. A present leader knows its newest revision, so a false claim of a gateway causes one rebuild per leader.
    const live = await this.#deps.store.liveProcesses()
    if (live.some(({ isAhead }) => isAhead)) return WENT_BACK
    this.#epoch = meta.epoch
    this.#revision = meta.revision
    return undefined
  }

  /** @returns why the data set must be rebuilt; undefined when it is as this leader left it @throws ForeignStore */
  async verify(): Promise<string | undefined> {
    const meta = await this.#deps.store.meta()
    if (meta === undefined) return 'the store was emptied'
    const foreign = this.#foreign(meta)
    if (foreign !== undefined) return foreign
    if (meta.epoch !== this.#epoch) return 'its epoch changed'
    return meta.revision < this.#revision ? WENT_BACK : undefined
  }

  /** @returns revisions of the changes; undefined: the data set must be rebuilt @throws when another leader or installation writes */
  async write(changes: readonly ProjectionChange[]): Promise<readonly number[] | undefined> {
    const { store, assertLeading, beforeWrite } = this.#deps
    assertLeading()
    await beforeWrite(changes)
    const outcome = await store.write(this.#writer(), this.#epoch, changes, this.#revision)
    const revisions = this.#revisionsOf(outcome)
    if (revisions !== undefined) this.#revision = Math.max(this.#revision, ...revisions)
    return revisions
  }

  /** Writes everything under a new epoch. @returns the revision of the switch */
  async rebuild(records: readonly ProjectionChange[]): Promise<number> {
    const { store, beforeWrite } = this.#deps
    const meta = await this.#prepared()
    const revision = Math.max(this.#revision, meta?.revision ?? 0) + 1
    if (meta !== undefined && this.#epoch === '') await this.#outbid(meta.fence)
    const epoch = randomUUID()
    await beforeWrite(records)
    if (this.#revisionsOf(await store.rebuild(this.#writer(), epoch, revision, records)) === undefined)
      throw new Error('the store changed during a rebuild; it is tried again')
    this.#epoch = epoch
    this.#revision = revision
    return revision
  }

  /** Reads whose data set it is before the first write: functions are data of the other installation too. @throws ForeignStore */
  async #prepared(): Promise<ProjectionMeta | undefined> {
    const { store, assertLeading, onPrepared } = this.#deps
    assertLeading()
    const meta = await store.meta()
    if (meta !== undefined) this.#foreign(meta)
    await store.prepare()
    await onPrepared()
    return meta
  }

  #writer() {
    return { fence: this.#deps.fence(), installation: this.#deps.installation(), takesOver: this.#deps.takesOver }
  }

  #revisionsOf(outcome: WriteOutcome): readonly number[] | undefined {
    switch (outcome.outcome) {
      case 'written':
        return outcome.revisions
      case 'foreign-epoch':
        return undefined
      case 'foreign-installation':
        throw foreignInstallation(outcome.installation)
      case 'fenced':
        this.#deps.onFenced(outcome.fence)
        throw new Error(`another leader with fence ${outcome.fence} writes the projection`)
    }
  }

  /** @returns why a data set is replaced; undefined for one of this installation and layout @throws ForeignStore when it must not be replaced */
  #foreign({ schema, installation }: ProjectionMeta): string | undefined {
    const own = this.#deps.installation()
    refuseForeign({ schema, installation }, { installation: own, takesOver: this.#deps.takesOver })
    if (schema !== PROJECTION_SCHEMA) return `its layout was ${schema}`
    return isForeign({ installation }, own) ? `it belonged to installation ${installation}, which this one takes over` : undefined
  }

  /** Writes this leader's fence to the store: from then on the store refuses calls of a former leader that are still under way. */
  async #claim({ epoch, revision, fence }: ProjectionMeta): Promise<void> {
    await this.#outbid(fence)
    const writer = this.#writer()
    if (this.#revisionsOf(await this.#deps.store.write(writer, epoch, [], revision)) === undefined)
      throw new Error('the store changed while it was taken over; it is tried again')
    this.#claimed = writer.fence
  }

  /** Raises the fence above the stored one: after the Lease was deleted its count starts again, and the store would refuse every write. */
  async #outbid(stored: number): Promise<void> {
    if (stored >= this.#deps.fence() && stored !== this.#claimed) await this.#deps.raiseFence(stored)
  }
}
