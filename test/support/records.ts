/** Keys as gateways see them, for tests of the reading side. */
import { hashCredential, mintCredential, type Credential } from '../../gateway/shared/credential.ts'
import { encodeKeyRecord, type KeyRecord } from '../../gateway/shared/key-record.ts'
import type { KeyringEntry, KeyringVerifier } from '../../gateway/shared/keyring-entry.ts'
import { FORMAT } from '../../gateway/shared/format.ts'
import { encodeModelRecord, type BackendRecord, type ModelRecord } from '../../gateway/shared/model-record.ts'
import type { Acknowledgement } from '../../gateway/shared/revision-log.ts'
import type { Writer } from '../../operator/projection/store.ts'

/** What a gateway process says that has applied everything up to `rev`. */
export function acknowledgement(change: Partial<Acknowledgement> = {}): Acknowledgement {
  const lists = { schemas: [...FORMAT.reads], features: [...FORMAT.features], bad: [] }
  return { epoch: 'e', rev: 1, source: 'Redis', ready: true, version: 't', backends: {}, ...lists, ...change }
}

/** The writer of the projection in tests that do not care who writes. */
export function writer(fence = 1, installation = ''): Writer {
  return { fence, installation }
}

/** A key with the value that only its user knows. */
export interface IssuedKey {
  readonly credential: Credential
  readonly record: KeyRecord
}

/** Makes an Active key of namespace `shop`. */
export function issuedKey(uid: string, change: Partial<KeyRecord> = {}): IssuedKey {
  const { credential, id } = mintCredential()
  const ver = [{ id, h: hashCredential(credential), exp: null }]
  return {
    credential,
    record: { v: 1, rev: 0, uid, ns: 'shop', name: uid, st: 'Active', exp: null, gen: 1, models: [['*']], ver, ...change },
  }
}

/** The same key as text. */
export function recordText(record: KeyRecord, change: Partial<KeyRecord> = {}): string {
  return encodeKeyRecord({ ...record, ...change })
}

/** The line of a key in the keyring. */
export function keyringEntry(record: KeyRecord, change: Partial<KeyringEntry> = {}): KeyringEntry {
  const rest: Omit<KeyringVerifier, 'id' | 'h' | 'exp'> = { n: 1, state: 'Issued', created: 0, prefix: 'sk-hg1Ab…wxyz' }
  return { ...record, ver: record.ver.map((verifier) => ({ ...verifier, ...rest })), deleted: null, ...change }
}

/** A model of namespace `shop` with one backend, as text. */
export function modelText(uid: string, change: Partial<ModelRecord> = {}): string {
  const backend: BackendRecord = {
    ...{ name: 'one', eps: [], svc: 'llama.shop.svc:8000', url: null, model: uid, w: 1 },
    ...{ messages: 'Native', auth: null, formerAuth: null },
  }
  return encodeModelRecord({
    v: 1,
    rev: 0,
    uid,
    ns: 'shop',
    name: uid,
    created: 0,
    served: uid,
    aliases: [],
    allow: ['shop'],
    to: { first: 600, idle: 120, total: 3600 },
    backends: [backend],
    ...change,
  })
}
