/** The share of the keyring that one namespace may take with its policies. */
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { ShardFull } from './shard-errors.ts'

/** A policy may grow by this many bytes beyond the share, so that a suspension that also adds a model becomes durable. */
export const SHARE_SLACK = { urgent: 512, other: 0 }

/** The error of a policy that does not fit into the share of its namespace. Policies that shrink, suspensions and deletions always fit. */
export class NamespaceShareFull extends ShardFull {
  constructor(namespace: string, size: { readonly bytes: number; readonly limit: number }) {
    super(
      `the model names of all keys of namespace ${namespace}`,
      size,
      'shorten spec.models or raise operator.settings.maxModelBytesPerNamespace',
    )
  }
}

/** Bytes of the model names in a policy; 0 for a tombstone or without an entry. */
export function modelBytesOf(entry: KeyringEntry | undefined): number {
  let bytes = 0
  for (const names of entry?.models ?? []) for (const name of names) bytes += Buffer.byteLength(name)
  return bytes
}
