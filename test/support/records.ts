/** Keys as gateways see them, for tests of the reading side. */
import { hashCredential, mintCredential, type Credential } from '#contract/values/credential.ts'
import { encodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import { CALL_ROUTES } from '#contract/values/call-routes.ts'
import type { KeyringEntry, KeyringVerifier } from '#contract/records/keyring-entry.ts'
import { FORMAT } from '#contract/records/format.ts'
import { encodeModelRecord, type BackendRecord, type ModelRecord } from '#contract/records/model-record.ts'
import type { Acknowledgement } from '#contract/records/revision-log.ts'
import type { LiveProcess, Writer } from '../../operator/projection/store.ts'

/** The acknowledgement of a gateway process that has applied everything up to `revision`. */
export function acknowledgement(change: Partial<Acknowledgement> = {}): Acknowledgement {
  const lists = { schemas: [...FORMAT.reads], features: [...FORMAT.features], unreadable: [] }
  return { epoch: 'e', revision: 1, source: 'Redis', ready: true, version: 't', backends: {}, ...lists, ...change }
}

/** The heartbeat of a gateway process. */
export function heartbeat(pod: string, change: Partial<Acknowledgement> = {}, name = '1'): LiveProcess {
  return { process: `${pod}/${name}`, pod, acknowledgement: acknowledgement(change) }
}

export function writer(fence = 1, installation = ''): Writer {
  return { fence, installation }
}

export interface IssuedKey {
  readonly credential: Credential
  readonly record: KeyRecord
}

/** Makes an Active key of namespace `shop`. */
export function issuedKey(uid: string, change: Partial<KeyRecord> = {}): IssuedKey {
  const { credential, id } = mintCredential()
  const verifiers = [{ id, hash: hashCredential(credential), expiresMs: null }]
  return {
    credential,
    record: {
      version: 1,
      revision: 0,
      uid,
      namespace: 'shop',
      name: uid,
      state: 'Active',
      expiresMs: null,
      generation: 1,
      models: [['*']],
      verifiers,
      ...change,
    },
  }
}

export function recordText(record: KeyRecord, change: Partial<KeyRecord> = {}): string {
  return encodeKeyRecord({ ...record, ...change })
}

export function keyringEntry(record: KeyRecord, change: Partial<KeyringEntry> = {}): KeyringEntry {
  const rest: Omit<KeyringVerifier, 'id' | 'hash' | 'expiresMs'> = { number: 1, state: 'Issued', createdMs: 0, prefix: 'sk-hg1Ab…wxyz' }
  return { ...record, verifiers: record.verifiers.map((verifier) => ({ ...verifier, ...rest })), deletedMs: null, ...change }
}

export function backendRecord(change: Partial<BackendRecord> = {}): BackendRecord {
  return {
    ...{ name: 'one', endpoints: [], service: null, url: null, upstreamModel: 'llama', weight: 1 },
    ...{ routes: CALL_ROUTES, engine: 'Other', credentialSum: null, formerCredentialSum: null },
    ...change,
  }
}

export function modelRecord(name: string, change: Partial<ModelRecord> = {}): ModelRecord {
  return {
    version: 1,
    revision: 0,
    uid: name,
    namespace: 'shop',
    name,
    createdMs: 0,
    servedName: name,
    aliases: [],
    allowedNamespaces: ['shop'],
    timeouts: { firstByteSeconds: 600, idleSeconds: 120, totalSeconds: 3600 },
    backends: [backendRecord({ service: 'llama.shop.svc:8000', upstreamModel: name })],
    ...change,
  }
}

export function modelText(uid: string, change: Partial<ModelRecord> = {}): string {
  return encodeModelRecord(modelRecord(uid, change))
}
