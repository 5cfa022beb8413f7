/**
 * The keyring: durable truth about issued keys, as text. A line is a KeyRecord whose verifiers carry the rest of their story.
 * One encoder and one decoder for both sides: the operator writes shards, gateways read the same shards from mounted files when Redis is away.
 *
 * Shard text: NDJSON, gzipped. First line `{"schema":1,"shards":<n>,"shard":<i>,"rev":<newest revision>}`, then one line per key.
 */
import { gunzipSync, gzipSync } from 'node:zlib'
import { z } from 'zod'
import { KEY_HASH_PATTERN, type KeyHash } from './credential.ts'
import { KEY_RECORD_SCHEMA, type KeyRecord } from './key-record.ts'

/** Version of the shard text. */
export const KEYRING_SCHEMA = 1

const verifier = z.strictObject({
  id: z.string().min(1).max(64),
  h: z
    .string()
    .regex(KEY_HASH_PATTERN)
    .transform((text) => text as KeyHash),
  exp: z.int().nonnegative().nullable(),
  n: z.int().positive(), // generation of the key material, counted from 1
  state: z.enum(['Minted', 'Issued', 'Revoked']),
  created: z.int().nonnegative(), // ms
  prefix: z.string().max(32), // for status: first 8 and last 4 characters
})

const line = z.strictObject({
  v: z.literal(KEY_RECORD_SCHEMA),
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  ns: z.string().min(1).max(253),
  name: z.string().min(1).max(253),
  st: z.enum(['Active', 'Suspended', 'Revoked']),
  exp: z.int().nonnegative().nullable(),
  gen: z.int().nonnegative(),
  models: z.array(z.array(z.string().min(1)).min(1)).min(1),
  ver: z.array(verifier).max(16),
  deleted: z.int().nonnegative().nullable(), // ms when the ApiKey went; such a line stays 24 h, so that no older text revives the key
})

const header = z.strictObject({
  schema: z.literal(KEYRING_SCHEMA),
  shards: z.int().positive(),
  shard: z.int().nonnegative(),
  rev: z.int().nonnegative(),
})

/** One generation of a key with its state. Minted: live on the gateways, perhaps not yet in the user's Secret. */
export type KeyringVerifier = z.infer<typeof verifier>
/** Everything durable about one ApiKey. */
export type KeyringLine = z.infer<typeof line>
/** One Secret of the keyring. */
export interface KeyringShard {
  readonly shards: number
  readonly shard: number
  readonly rev: number
  readonly lines: readonly KeyringLine[]
}

/** Name of the Secret of a shard, in the operator's namespace. */
export function keyringSecretName(shards: number, shard: number): string {
  return `hg-keyring-${shards}-${shard}`
}
/** Data key of every keyring and model Secret. */
export const RECORDS_KEY = 'records'
/** Secret with the model records that a cold start reads; same text form as a shard, one ModelRecord per line after the header. */
export const MODELS_SECRET = 'hg-models'
/** Secret with the upstream tokens; its data keys begin with UPSTREAM_FILE_PREFIX. */
export const UPSTREAM_SECRET = 'hg-upstream'
/** Below the mounted folder: `keyring/<shards>-<shard>`, `models`, `upstream.<model uid>.<backend name>`. */
export const KEYRING_FOLDER = 'keyring'
export const MODELS_FILE = 'models'
export const UPSTREAM_FILE_PREFIX = 'upstream.'

/**
 * Refuses a line that a reader would refuse: a shard is read as a whole, so one bad line would cost all others.
 * @throws ZodError that names the field
 */
export function checkKeyringLine(entry: KeyringLine): void {
  line.parse(entry)
}

/** Packs a shard: gzipped bytes, well below the 1 MiB bound of a Secret for some thousand keys. */
export function encodeKeyringShard(shard: KeyringShard): Buffer {
  const head = { schema: KEYRING_SCHEMA, shards: shard.shards, shard: shard.shard, rev: shard.rev }
  return gzipSync([head, ...shard.lines].map((entry) => JSON.stringify(entry)).join('\n'))
}

/**
 * Unpacks a shard.
 * @throws when the bytes are damaged or of another schema; nothing of them may be used then
 */
export function decodeKeyringShard(bytes: Uint8Array): KeyringShard {
  const [first = '', ...rest] = gunzipSync(bytes).toString('utf8').split('\n')
  const { shards, shard, rev } = header.parse(JSON.parse(first))
  return { shards, shard, rev, lines: rest.map((text) => line.parse(JSON.parse(text))) }
}

/** Packs the model records of a cold start. `texts` are encoded ModelRecords. */
export function encodeModelsFile(rev: number, texts: readonly string[]): Buffer {
  return gzipSync([JSON.stringify({ schema: KEYRING_SCHEMA, shards: 1, shard: 0, rev }), ...texts].join('\n'))
}

/** Unpacks the model records of a cold start. @throws when the bytes are damaged or of another schema */
export function decodeModelsFile(bytes: Uint8Array): readonly string[] {
  const [first = '', ...texts] = gunzipSync(bytes).toString('utf8').split('\n')
  header.parse(JSON.parse(first))
  return texts
}

/** What gateways may know of a line: the live verifiers, no history. A deleted key reads as Revoked. */
export function keyRecordOf(from: KeyringLine): KeyRecord {
  const { v, rev, uid, ns, name, exp, gen, models } = from
  const ver = from.ver.filter((entry) => entry.state !== 'Revoked').map(({ id, h, exp: end }) => ({ id, h, exp: end }))
  return { v, rev, uid, ns, name, st: from.deleted === null ? from.st : 'Revoked', exp, gen, models, ver }
}
