/**
 * Binds the credential of a model server to the addresses of the server. Records stand in Redis; credentials do not. The operator, which has read
 * in the credential's Secret where the credential may go, makes a proof with the credential itself as the key. So nobody who can write in Redis
 * can have a credential sent to another address: such a person lacks the key (decision 39).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { BackendRecord } from './model-record.ts'

const DOMAIN = 'headgate-credential-1'

/** Where a backend of a record leads, and the place of the credential in a request. */
export type BackendPlace = Pick<BackendRecord, 'name' | 'url' | 'service' | 'endpoints' | 'credentialHeader' | 'credentialScheme'>

/** @param value the credential @param uid of the ServedModel @returns 64 hex digits */
export function credentialProof(value: string, uid: string, place: BackendPlace): string {
  const { name, url, service, endpoints, credentialHeader, credentialScheme } = place
  const text = JSON.stringify([DOMAIN, uid, name, url, service, endpoints, credentialHeader, credentialScheme])
  return createHmac('sha256', value).update(text).digest('hex')
}

export function isProven(proof: string | undefined, value: string, uid: string, place: BackendPlace): boolean {
  return proof !== undefined && timingSafeEqual(Buffer.from(proof), Buffer.from(credentialProof(value, uid, place)))
}
