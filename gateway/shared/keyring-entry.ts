/**
 * The keyring: durable truth about issued keys, as text. An entry is a KeyRecord whose verifiers carry the rest of their history.
 * One reader and one writer for both sides: the operator writes shards of entries, gateways read them from mounted files.
 */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { KEY_HASH_PATTERN, type KeyHash } from './credential.ts'
import { formatHead, parseFormat } from './format.ts'
import type { KeyRecord } from './key-record.ts'

const verifierFields = {
  id: z.string().min(1).max(64),
  h: z
    .string()
    .regex(KEY_HASH_PATTERN)
    .transform((text) => text as KeyHash),
  exp: z.int().nonnegative().nullable(),
  n: z.int().positive(), // generation of the key material, counted from 1
  state: z.enum(['Minted', 'Issued', 'Voided', 'Revoked']),
  created: z.int().nonnegative(), // ms
  prefix: z.string().max(32), // for status: first 8 and last 4 characters
}

const entryFields = {
  v: z.int().positive(),
  needs: z.array(z.string()).optional(), // features without which a reader must not use the entry
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
    .optional(), // absent in tombstones alone
  ver: z.array(z.looseObject(verifierFields)).max(16),
  deleted: z.int().nonnegative().nullable(), // ms when the ApiKey was deleted
}
const keyringEntry = z.looseObject(entryFields).refine((entry) => entry.models !== undefined || entry.deleted !== null, {
  path: ['models'],
  message: 'only an entry of a deleted key has none',
})

/**
 * One generation of a key with its state. Minted: live on the gateways, perhaps not yet in the user's Secret. Issued: in the user's
 * Secret. Voided: it never reached anybody. Revoked: ended.
 */
export type KeyringVerifier = z.infer<z.ZodObject<typeof verifierFields>>

/**
 * Everything durable about one ApiKey. The entry of a deleted key is a tombstone: it stays 24 h without its policy, so that no older text
 * revives the key. Fields of later versions, which these types do not name, stay in an entry.
 */
export type KeyringEntry = Omit<z.infer<z.ZodObject<typeof entryFields>>, 'ver'> & { ver: KeyringVerifier[] }

/**
 * Reads one entry.
 * @throws UnknownVersion when another build wrote it: its text must stay as it is; SyntaxError, TypeError or ZodError mean damage
 */
export function readKeyringEntry(text: string): KeyringEntry {
  return keyringEntry.parse(parseFormat(text))
}

/**
 * Writes one entry. Fields that this build does not know are taken over from the entry it replaces; a tombstone drops them.
 * @throws ZodError for an entry that no reader could read, with the field
 */
export function writeKeyringEntry(entry: KeyringEntry, former?: KeyringEntry): string {
  const { v, needs, rev, uid, ns, name, st, exp, gen, models, ver, deleted, ...unknown } = keyringEntry.parse(entry)
  const kept = deleted === null ? { ...unknownFields(former, entryFields), ...unknown } : {}
  const verifiers = ver.map((one) => ({
    ...one,
    ...unknownFields(
      former?.ver.find(({ id }) => id === one.id),
      verifierFields,
    ),
  }))
  const policy = models === undefined ? {} : { models }
  return JSON.stringify({ ...formatHead(v, needs), rev, uid, ns, name, st, exp, gen, ...policy, ver: verifiers, deleted, ...kept })
}

/** The id that an entry's text carries, whatever its version. */
export function keyringEntryUid(text: string): string | undefined {
  try {
    return z.object({ uid: entryFields.uid }).safeParse(JSON.parse(text)).data?.uid
  } catch {
    return undefined // damage, which the caller reports
  }
}

/** @returns whether two entries say the same, but for their revision and fields that this build does not know */
export function sameEntry(a: KeyringEntry, b: KeyringEntry): boolean {
  return isDeepStrictEqual(content(a), content(b))
}

/** What gateways may know of an entry: the live verifiers, no history. A deleted key reads as Revoked. */
export function keyRecordOf(entry: KeyringEntry): KeyRecord {
  const { v, needs, rev, uid, ns, name, exp, gen, models = [['*']], deleted } = entry
  const ver = entry.ver.filter(isLive).map(({ id, h, exp: end }) => ({ id, h, exp: end }))
  const head = needs === undefined ? { v } : { v, needs }
  return { ...head, rev, uid, ns, name, st: deleted === null ? entry.st : 'Revoked', exp, gen, models, ver }
}

/** @returns whether gateways accept this generation of a key */
export function isLive({ state }: KeyringVerifier): boolean {
  return state === 'Minted' || state === 'Issued'
}

/** A list without texts of its own: entries are compared several times per step, and a policy may have 8 KiB. */
function content({ v, needs = [], uid, ns, name, st, exp, gen, models = [], ver, deleted }: KeyringEntry): readonly unknown[] {
  const verifiers = ver.map(({ id, h, exp: end, n, state, created, prefix }) => [id, h, end, n, state, created, prefix])
  return [v, needs, uid, ns, name, st, exp, gen, models, verifiers, deleted]
}

function unknownFields(former: object | undefined, known: object): object {
  return Object.fromEntries(Object.entries(former ?? {}).filter(([field]) => !(field in known)))
}
