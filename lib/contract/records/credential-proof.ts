/**
 * Binds the credential of a model server to the addresses of the server. Records stand in Redis; credentials do not. The operator, which has read
 * in the credential's Secret where the credential may go, makes a proof with the credential itself as the key. So nobody who can write in Redis
 * can have a credential sent to another address: such a person lacks the key.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { BackendRecord } from './model-record.ts'

const DOMAIN = 'headgate-credential-1'

/** Where a backend of a record leads. */
export type BackendPlace = Pick<BackendRecord, 'name' | 'url' | 'service' | 'endpoints'>

/** @param value the credential @param uid of the ServedModel @returns 64 hex digits */
export function credentialProof(value: string, uid: string, { name, url, service, endpoints }: BackendPlace): string {
  return createHmac('sha256', value)
    .update(JSON.stringify([DOMAIN, uid, name, url, service, endpoints]))
    .digest('hex')
}

export function isProven(proof: string | undefined, value: string, uid: string, place: BackendPlace): boolean {
  return proof !== undefined && timingSafeEqual(Buffer.from(proof), Buffer.from(credentialProof(value, uid, place)))
}
