/** Whose projection a store holds: the operator writes nothing to a store of another installation, or of a newer version. */
import { PROJECTION_SCHEMA } from '#contract/records/format.ts'
import type { ProjectionMeta } from '#contract/records/revision-log.ts'

/** The error of a store that belongs to another installation or a newer version. The operator writes nothing until an administrator decides. */
export class ForeignStore extends Error {
  override readonly name = 'ForeignStore'
}

/** Whose store it may be. */
export interface Owner {
  /** Identity of this installation, durable beside the keyring. */
  readonly installation: string
  /** Replace the projection of another installation or of a newer layout. */
  readonly takesOver: boolean
}

/** Whether another installation wrote a data set. One without an id is of an early version, and is adopted. */
export function isForeign({ installation }: Pick<ProjectionMeta, 'installation'>, own: string): boolean {
  return installation !== '' && installation !== own
}

/** @throws ForeignStore if this installation must not write to the store */
export function refuseForeign({ schema, installation }: Pick<ProjectionMeta, 'schema' | 'installation'>, owner: Owner): void {
  if (owner.takesOver) return
  if (schema > PROJECTION_SCHEMA)
    throw new ForeignStore(
      `a newer version of Headgate wrote the projection (layout ${schema}, this version writes ${PROJECTION_SCHEMA}); update the operator, or set REDIS_TAKE_OVER=true to replace it`,
    )
  if (isForeign({ installation }, owner.installation)) throw foreignInstallation(installation)
}

export function foreignInstallation(installation: string): ForeignStore {
  return new ForeignStore(
    `this Redis holds the projection of another installation (${installation}); give each installation a Redis or a REDIS_KEY_PREFIX of its own, or set REDIS_TAKE_OVER=true to replace it`,
  )
}
