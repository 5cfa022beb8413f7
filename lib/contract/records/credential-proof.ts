/**
 * Binds the credential of a model server to the addresses of the server. Redis holds records, but no credentials. The credential's Secret tells the
 * operator which addresses may receive the credential, and the operator makes a proof with the credential itself as the key. A person who can write
 * to Redis lacks this key, and so cannot redirect a credential to another address (decision 39).
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
