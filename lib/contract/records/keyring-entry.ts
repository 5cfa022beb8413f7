/**
 * The keyring: the durable record of issued keys, as text. An entry is a KeyRecord whose verifiers include their history. The operator
 * writes shards of entries, and gateways read them from mounted files. Fields that this build does not know survive an edit.
 */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { type DataOf, recordCodec, type RecordOf, timeField } from './format.ts'
import { keyBody, keyNeeds, type KeyRecord, keyVerifier } from './key-record.ts'

const verifier = keyVerifier.extend({
  /** Generation of the key material, counted from 1. */
  number: z.int().positive(),
  state: z.enum(['Minted', 'Issued', 'Voided', 'Revoked']),
  createdMs: timeField,
  /** For the status: first 8 and last 4 characters of the Credential; for origin Hash the hint of the manifest, perhaps ''. */
  prefix: z.string().max(32),
  /** Source of the value, as in source.type of the manifest. Absent: the operator made it. A later version may have more. */
  origin: z.string().max(32).optional(),
})

const entryBody = keyBody.extend({
  /** Absent in tombstones alone. */
  models: keyBody.shape.models.optional(),
  verifiers: z.array(verifier).max(16),
  /** The end that the manifest asked for when `expiresMs` was decided, for a key with an account; null: none. */
  askedMs: timeField.nullable().optional(),
  /** Time of the deletion of the ApiKey, ms since 1970; null: not deleted. */
  deletedMs: timeField.nullable(),
})
const entryWithUnknownFields = entryBody
  .extend({ verifiers: z.array(verifier.loose()).max(16) })
  .loose()
  .refine((entry) => entry.models !== undefined || entry.deletedMs !== null, {
    path: ['models'],
    message: 'only an entry of a deleted key has none',
  })

/**
 * A generation of a key with its state. Minted: live on the gateways, perhaps not yet in the user's Secret. Issued: in the user's Secret.
 * Voided: never delivered. Revoked: ended.
 */
export type KeyringVerifier = DataOf<typeof verifier>
/**
 * All durable data of an ApiKey. The entry of a deleted key is a tombstone: it stays for 24 h without its policy, so that no older text
 * revives the key.
 */
export type KeyringEntry = RecordOf<typeof entryBody>

const codec = recordCodec(entryWithUnknownFields as unknown as typeof entryBody, keyNeeds)

/**
 * Decodes an entry.
 * @throws UnknownVersion if another build wrote it and its text must stay unchanged; SyntaxError, TypeError or ZodError if it is damaged
 */
export const readKeyringEntry: (text: string) => KeyringEntry = codec.decode

/**
 * Encodes an entry. Unknown fields come from the entry that it replaces; a tombstone drops them.
 * @throws ZodError with the field, for an entry that no reader could read
 */
export function writeKeyringEntry(entry: KeyringEntry, former?: KeyringEntry): string {
  const formerOf = ({ id }: KeyringVerifier) => former?.verifiers.find((one) => one.id === id)
  const verifiers = entry.verifiers.map((one) => ({ ...unknownIn(verifier, formerOf(one)), ...one }))
  const kept = entry.deletedMs === null ? unknownIn(entryBody, former) : {}
  return codec.encode({ ...kept, ...entry, verifiers }, entry.version)
}

/** Whether two entries are equal except for their revision and unknown fields. */
export function sameEntry(a: KeyringEntry, b: KeyringEntry): boolean {
  return isDeepStrictEqual(content(a), content(b))
}

/** Builds the record for gateways: the live verifiers without history. A deleted key reads as Revoked. */
export function keyRecordOf(keyringEntry: KeyringEntry): KeyRecord {
  const { deletedMs, askedMs: _, models = [['*']], ...entry } = keyringEntry
  const verifiers = entry.verifiers.filter(isLive).map(recordVerifierOf)
  return { ...entry, models, verifiers, state: deletedMs === null ? entry.state : 'Revoked' }
}

function recordVerifierOf({ id, hash, expiresMs, proof, createdMs }: KeyringVerifier): KeyRecord['verifiers'][number] {
  return { id, hash, expiresMs, ...(proof !== undefined && { proof, createdMs }) }
}

/** Whether gateways accept this generation of a key. */
export function isLive({ state }: KeyringVerifier): boolean {
  return state === 'Minted' || state === 'Issued'
}

const ENTRY_FIELDS = Object.keys(entryBody.omit({ verifiers: true }).shape) as ReadonlyArray<keyof KeyringEntry>
const VERIFIER_FIELDS = Object.keys(verifier.shape) as ReadonlyArray<keyof KeyringVerifier>

/**
 * Lists the content of an entry for comparison, without building texts: entries are compared several times per step, and a policy may have
 * 8 KiB.
 */
function content(entry: KeyringEntry): readonly unknown[] {
  const verifiers = entry.verifiers.map((one) => VERIFIER_FIELDS.map((field) => one[field]))
  return [entry.version, ...ENTRY_FIELDS.map((field) => entry[field]), verifiers]
}

/** The fields of a text that its schema does not name. */
function unknownIn({ shape }: z.ZodObject, value: object | undefined): object {
  return Object.fromEntries(Object.entries(value ?? {}).filter(([field]) => !Object.hasOwn(shape, field)))
}
