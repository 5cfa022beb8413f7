/**
 * The keyring: the durable record of issued keys, as text. An entry is a KeyRecord whose verifiers include their history. The operator
 * writes shards of entries, and gateways read them from mounted files. Texts have short field names, which only this file knows.
 */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { KEY_HASH_PATTERN, type KeyHash } from '../values/credential.ts'
import { formatHead, parseFormat } from './format.ts'
import type { KeyRecord, KeyVerifier } from './key-record.ts'
import { type LimitedRecord, limitFields, limitsOf, needsOf, otherNeeds, wireLimitsOf } from './limits-record.ts'

/** Unknown fields, as in the text. */
type UnknownFields = Readonly<Record<string, unknown>>

/**
 * A generation of a key with its state. Minted: live on the gateways, perhaps not yet in the user's Secret. Issued: in the user's Secret.
 * Voided: never delivered. Revoked: ended.
 */
export interface KeyringVerifier extends KeyVerifier {
  /** Generation of the key material, counted from 1. */
  readonly number: number
  readonly state: 'Minted' | 'Issued' | 'Voided' | 'Revoked'
  /** ms since 1970. */
  readonly createdMs: number
  /** For the status: first 8 and last 4 characters of the Credential; for origin Hash the hint of the manifest, perhaps ''. */
  readonly prefix: string
  /** Source of the value, as in source.type of the manifest. Absent: the operator made it. A later version may have more. */
  readonly origin?: string | undefined
  readonly unknown?: UnknownFields | undefined
}

/**
 * All durable data of an ApiKey. The entry of a deleted key is a tombstone: it stays for 24 h without its policy, so that no older text
 * revives the key.
 */
export interface KeyringEntry extends Omit<KeyRecord, 'models' | 'verifiers'> {
  /** Absent in tombstones alone. */
  readonly models?: KeyRecord['models'] | undefined
  readonly verifiers: readonly KeyringVerifier[]
  /** Time of the deletion of the ApiKey, ms since 1970; null: not deleted. */
  readonly deletedMs: number | null
  readonly unknown?: UnknownFields | undefined
}

const verifierFields = {
  id: z.string().min(1).max(64),
  h: z.string().regex(KEY_HASH_PATTERN),
  exp: z.int().nonnegative().nullable(),
  n: z.int().positive(),
  state: z.enum(['Minted', 'Issued', 'Voided', 'Revoked']),
  created: z.int().nonnegative(),
  prefix: z.string().max(32),
  origin: z.string().max(32).optional(),
}

const entryFields = {
  v: z.int().positive(),
  needs: z.array(z.string()).optional(),
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  ns: z.string().min(1).max(253),
  name: z.string().min(1).max(253),
  st: z.enum(['Active', 'Suspended', 'Revoked']),
  exp: z.int().nonnegative().nullable(),
  gen: z.int().nonnegative(),
  models: z
    .array(z.array(z.string().min(1)).min(1))
    .min(1)
    .optional(),
  ...limitFields,
  ver: z.array(z.looseObject(verifierFields)).max(16),
  deleted: z.int().nonnegative().nullable(),
}
const wireEntry = z.looseObject(entryFields).refine((entry) => entry.models !== undefined || entry.deleted !== null, {
  path: ['models'],
  message: 'only an entry of a deleted key has none',
})

type WireEntry = z.infer<typeof wireEntry>

const keyringEntry = wireEntry.transform((wire): KeyringEntry => ({
  version: wire.v,
  needs: otherNeeds(wire.needs),
  revision: wire.rev,
  uid: wire.uid,
  namespace: wire.ns,
  name: wire.name,
  state: wire.st,
  expiresMs: wire.exp,
  generation: wire.gen,
  models: wire.models,
  ...limitsOf(wire),
  verifiers: wire.ver.map(verifierOf),
  deletedMs: wire.deleted,
  unknown: unknownFields(wire, entryFields),
}))

/**
 * Decodes an entry.
 * @throws UnknownVersion if another build wrote it and its text must stay unchanged; SyntaxError, TypeError or ZodError if it is damaged
 */
export function readKeyringEntry(text: string): KeyringEntry {
  return keyringEntry.parse(parseFormat(text))
}

/**
 * Encodes an entry. Unknown fields come from the entry that it replaces; a tombstone drops them.
 * @throws ZodError with the field, for an entry that no reader could read
 */
export function writeKeyringEntry(entry: KeyringEntry, former?: KeyringEntry): string {
  const { version, uid, name, models, deletedMs } = entry
  const kept = deletedMs === null ? { ...former?.unknown, ...entry.unknown } : {}
  const wire = {
    ...formatHead(version, needsOf(entry)),
    rev: entry.revision,
    uid,
    ns: entry.namespace,
    name,
    st: entry.state,
    exp: entry.expiresMs,
    gen: entry.generation,
    models,
    ...wireLimitsOf(entry),
    ver: entry.verifiers.map((one) =>
      wireVerifier(
        one,
        former?.verifiers.find(({ id }) => id === one.id),
      ),
    ),
    deleted: deletedMs,
    ...kept,
  }
  wireEntry.parse(wire)
  return JSON.stringify(wire)
}

/** Reads the id of an entry's text of any version. */
export function keyringEntryUid(text: string): string | undefined {
  try {
    return z.object({ uid: entryFields.uid }).safeParse(JSON.parse(text)).data?.uid
  } catch {
    return undefined // damage, which the caller reports
  }
}

/** Whether two entries are equal except for their revision and unknown fields. */
export function sameEntry(a: KeyringEntry, b: KeyringEntry): boolean {
  return isDeepStrictEqual(content(a), content(b))
}

/** Builds the record for gateways: the live verifiers without history. A deleted key reads as Revoked. */
export function keyRecordOf(entry: KeyringEntry): KeyRecord {
  const { version, needs, revision, uid, namespace, name, expiresMs, generation, models = [['*']], deletedMs } = entry
  const state = deletedMs === null ? entry.state : 'Revoked'
  const verifiers = entry.verifiers.filter(isLive).map(({ id, hash, expiresMs: end }) => ({ id, hash, expiresMs: end }))
  return { version, needs, revision, uid, namespace, name, state, expiresMs, generation, models, ...limitedBy(entry), verifiers }
}

/** Whether gateways accept this generation of a key. */
export function isLive({ state }: KeyringVerifier): boolean {
  return state === 'Minted' || state === 'Issued'
}

/**
 * Lists the content of an entry for comparison, without building texts: entries are compared several times per step, and a policy may have
 * 8 KiB.
 */
function content(entry: KeyringEntry): readonly unknown[] {
  const { version, needs = [], uid, namespace, name, state, expiresMs, generation, models = [], deletedMs } = entry
  const verifiers = entry.verifiers.map((one) => [
    one.id,
    one.hash,
    one.expiresMs,
    one.number,
    one.state,
    one.createdMs,
    one.prefix,
    one.origin,
  ])
  return [version, needs, uid, namespace, name, state, expiresMs, generation, models, wireLimitsOf(entry), verifiers, deletedMs]
}

/** Lists only fields that are set, so that records of keys without limits stay small. */
function limitedBy({ limits, budgets, onStoreUnavailable }: KeyringEntry): LimitedRecord {
  return { ...(limits && { limits }), ...(budgets && { budgets }), ...(onStoreUnavailable && { onStoreUnavailable }) }
}

function verifierOf(wire: WireEntry['ver'][number]): KeyringVerifier {
  return {
    id: wire.id,
    hash: wire.h as KeyHash,
    expiresMs: wire.exp,
    number: wire.n,
    state: wire.state,
    createdMs: wire.created,
    prefix: wire.prefix,
    ...(wire.origin && { origin: wire.origin }),
    unknown: unknownFields(wire, verifierFields),
  }
}

function wireVerifier(
  { id, hash, expiresMs, number, state, createdMs, prefix, origin, unknown }: KeyringVerifier,
  former?: KeyringVerifier,
): object {
  return { id, h: hash, exp: expiresMs, n: number, state, created: createdMs, prefix, origin, ...unknown, ...former?.unknown }
}

/** Finds unknown fields. Most texts have none, and nothing is allocated then. */
function unknownFields(wire: UnknownFields, known: object): UnknownFields | undefined {
  let unknown: Record<string, unknown> | undefined
  for (const field of Object.keys(wire)) if (!Object.hasOwn(known, field)) (unknown ??= {})[field] = wire[field]
  return unknown
}
