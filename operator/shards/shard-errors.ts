import { isKubeError, KubeError } from '#kube/port.ts'

/** The error of an entry that does not fit into its shard. Entries that shrink, removals and revocations always fit. */
export class ShardFull extends KubeError {
  /** @param remedy for example `raise keyring.shards` */
  constructor(shard: string, size: { readonly bytes: number; readonly limit: number }, remedy: string) {
    super('Other', 0, `${shard} would hold ${size.bytes} bytes, above ${size.limit}: ${remedy}`)
  }
}

/** The error of a change to an entry or shard of another build: this build must not overwrite data that it cannot read. */
export class EntryUnreadable extends KubeError {
  /** @param why for example `version 2` */
  constructor(what: string, why: string) {
    super('Other', 0, `${what} was written by another version of the operator (${why}); it stays as it is: run an operator that reads it`)
  }
}

/** @returns whether the API server refuses the content of an object: too large, most of the time */
export function isContentRefused(error: unknown): boolean {
  return isKubeError(error) && (error.code === 'Invalid' || error.status === 413)
}
