/** The sets of Secrets: what each holds, how it is encoded, and how full a Secret may be. */
import { hash } from 'node:crypto'
import { parseFormat, withUid } from '#contract/records/format.ts'
import { type KeyringEntry, readKeyringEntry, writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { UPSTREAM_FILE_PREFIX } from '#contract/records/mounted-folder.ts'
import type { ShardSetKind } from './secret-shards.ts'
import { BY_UID, type DecodedShard, recordCodec, type ShardCodec, type ShardData, type StoredEntry } from './shard-codec.ts'
import { type AccountBook, bookCodec } from './account-book.ts'
import { type CreditEntry, creditCodec } from './credit-entry.ts'
import { type SpendEntry, spendCodec } from './spend-entry.ts'
import { type HistoryEntry, historyCodec, type OpenUsage, usageCodec } from './usage-entry.ts'
import { type UsedValue, usedValueCodec } from './used-value.ts'

/** An encoded record. */
export interface RecordEntry {
  readonly uid: string
  readonly text: string
}

/** A backend credential. Never log it. */
export interface CredentialEntry {
  /** SHA-256, hex. */
  readonly sum: string
  readonly value: string
}

/** etcd refuses objects above 1.5 MiB, and the API server refuses Secrets above 1 MiB. */
const LARGEST_BYTES = 900 * 1024
/** The number of mounted shards is fixed, so only less content helps. */
const MOUNTED_REMEDY = 'use fewer ServedModels or fewer distinct backend credentials'
const SUM = /^[0-9a-f]{64}$/

/**
 * Issued keys. A change rewrites the whole shard, so its size bounds the time of a single change. Measured at the API server: a write of
 * 16 KiB takes 6 ms, of 256 KiB 25 ms, of 900 KiB 100 ms.
 */
export const KEYRING_SET: ShardSetKind<KeyringEntry> = {
  set: 'keyring',
  codec: keyringCodec,
  limitBytes: 256 * 1024,
  remedy: 'raise keyring.shards',
}

/** Model records of a cold start, one per text line. The kubelet takes up to a minute to mount a change, so changes of two seconds share a write. */
export const MODELS_SET: ShardSetKind<RecordEntry> = {
  set: 'models',
  codec: textCodec,
  limitBytes: LARGEST_BYTES,
  lingerMs: 2_000,
  remedy: MOUNTED_REMEDY,
}

/** Records of accounts and plans, one per text line: durable truth about deleted ones, and for a cold start. */
export const ACCOUNTS_SET: ShardSetKind<RecordEntry> = {
  set: 'accounts',
  codec: textCodec,
  limitBytes: LARGEST_BYTES,
  remedy: 'delete Accounts that are not used',
}

/**
 * The books of accounts, by name. Only the operator reads them. About 5,000 accounts that spend through ten processes fit into each. A shard is
 * written every 2.5 s at most, and a full one every 19 s.
 */
export const BALANCES_SET: ShardSetKind<AccountBook> & { readonly shards: number } = {
  set: 'balances',
  shards: 8,
  codec: bookCodec,
  limitBytes: LARGEST_BYTES,
  remedy: 'ask for larger books; they keep every name for ever',
  rideMs: 2_500,
}

/**
 * Every Credit that was ever booked, by its name. Only the operator reads them. About 16,000 fit into each with the names and references that
 * docs/money.md advises, 32,000 with names of 27 characters and no reference: compressed, random characters take nearly all of the room.
 */
export const CREDITS_SET: ShardSetKind<CreditEntry> & { readonly shards: number } = {
  set: 'credits',
  shards: 8,
  codec: () => creditCodec,
  limitBytes: LARGEST_BYTES,
  remedy: 'ask for larger books; they keep every Credit for ever',
  keepsDamaged: true,
}

/** Backend credentials, which never enter Redis. */
export const UPSTREAM_SET: ShardSetKind<CredentialEntry> = {
  set: 'upstream',
  codec: () => credentialCodec,
  limitBytes: LARGEST_BYTES,
  remedy: MOUNTED_REMEDY,
}

/**
 * Durable spend. Only the operator reads it, so the number of shards is not a setting: about 15,000 subjects fit into each. A shard is written
 * every 2.5 s at most while it is small, and a full one every 19 s: 384 KiB per second at most in all.
 */
export const SPEND_SET: ShardSetKind<SpendEntry> & { readonly shards: number } = {
  set: 'spend',
  shards: 8,
  codec: () => spendCodec,
  limitBytes: LARGEST_BYTES,
  remedy: 'use fewer ApiKeys with budgets',
  rideMs: 2_500,
}

/** Usage of today and yesterday, by account. A shard is written every few seconds while its accounts are in use. */
export const USAGE_SET: ShardSetKind<OpenUsage> & { readonly shards: number } = {
  set: 'usage',
  shards: 8,
  codec: () => usageCodec,
  limitBytes: LARGEST_BYTES,
  remedy: 'use fewer keys and models',
}

/** Usage of former days and months, by account. Each account is written once a day. */
export const HISTORY_SET: ShardSetKind<HistoryEntry> & { readonly shards: number } = {
  set: 'history',
  shards: 32,
  codec: () => historyCodec,
  limitBytes: LARGEST_BYTES,
  remedy: 'use fewer keys and models',
}

/** Values that keys with source.type Hash have had: about 10,000 fit into each Secret. */
export const VALUES_SET: ShardSetKind<UsedValue> & { readonly shards: number } = {
  set: 'values',
  shards: 32,
  codec: () => usedValueCodec,
  limitBytes: LARGEST_BYTES,
  remedy: 'give keys with source.type Hash a source.hash.proof',
}

/** @param version of the header */
export function keyringCodec(version: () => number): ShardCodec<KeyringEntry> {
  return recordCodec<KeyringEntry>(
    {
      ...BY_UID,
      read: readKeyringEntry,
      write: (entry, former) => writeKeyringEntry(entry, former === undefined ? undefined : readKeyringEntry(former)),
    },
    version,
  )
}

function textCodec(version: () => number): ShardCodec<RecordEntry> {
  const read = (text: string): RecordEntry => ({ ...withUid.parse(parseFormat(text)), text })
  return recordCodec<RecordEntry>({ ...BY_UID, read, write: ({ text }) => text }, version)
}

/** One data key per credential, named after its SHA-256. */
export const credentialCodec: ShardCodec<CredentialEntry> = {
  idOf: ({ sum }) => sum,
  write: ({ value }) => Buffer.from(value).toString('base64'),
  encode: (_, entries) => Promise.resolve(Object.fromEntries(Array.from(entries, credentialDataOf))),
  decode: (data) => Promise.resolve(decodeCredentials(data)),
}

function credentialDataOf({ id = '', text }: StoredEntry<CredentialEntry>): readonly [string, string] {
  return [SUM.test(id) ? `${UPSTREAM_FILE_PREFIX}${id}` : id, text]
}

/** Keeps data keys it does not recognise: another build may have written them. */
function decodeCredentials(data: ShardData): DecodedShard<CredentialEntry> {
  const entries = Object.entries(data).map(([key, text]): StoredEntry<CredentialEntry> => {
    const sum = key.startsWith(UPSTREAM_FILE_PREFIX) ? key.slice(UPSTREAM_FILE_PREFIX.length) : ''
    if (!SUM.test(sum)) return { id: key, text, entry: undefined, why: 'unknown data key' }
    return { id: sum, text, entry: { sum, value: Buffer.from(text, 'base64').toString('utf8') } }
  })
  const intact = entries.filter(({ entry }) => entry === undefined || hash('sha256', entry.value, 'hex') === entry.sum)
  return { entries: intact, damaged: entries.length - intact.length }
}
