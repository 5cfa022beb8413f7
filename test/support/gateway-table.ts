import { hashCredential } from '#contract/values/credential.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import type { ProjectionMeta } from '#contract/records/revision-log.ts'
import type { Applied, OperatorWorld } from './operator-world.ts'

/** The table of an OperatorWorld's gateways: they keep it while the store is empty, and take no data set older than their own. */
export class GatewayTable {
  readonly #world: OperatorWorld
  #meta: ProjectionMeta | undefined
  records: readonly KeyRecord[] = []

  constructor(world: OperatorWorld) {
    this.#world = world
  }

  async follow(): Promise<void> {
    const meta = await this.#world.memory.meta()
    if (!meta || (this.#meta?.epoch === meta.epoch && meta.revision < this.#meta.revision)) return
    this.records = await this.#world.keyRecords()
    this.#meta = meta
  }

  /** Follows the store. @returns the applied revision */
  async applied(): Promise<Applied> {
    await this.follow()
    return { epoch: this.#meta?.epoch ?? '', revision: this.#meta?.revision ?? 0 }
  }

  authenticates(value: string): boolean {
    const hash = hashCredential(value)
    const { now } = this.#world
    return this.records.some(
      ({ state, expiresMs, verifiers }) =>
        state === 'Active' && (expiresMs === null || expiresMs > now) && verifiers.some((verifier) => verifier.hash === hash),
    )
  }
}
