/** Draws the value of a key. The manifest gets what recognizes the value, and the person gets the value, once. */
import type { ApiKeySpec } from '#api/apikey.ts'
import { type Credential, credentialPrefix, hashCredential, hexOf, mintCredential, proofOf } from '#contract/values/credential.ts'
import type { ObjectRef } from '#kube/port.ts'

export interface DrawnValue {
  readonly value: Credential
  /** `spec.source.hash` of the ApiKey. */
  readonly hash: NonNullable<NonNullable<ApiKeySpec['source']>['hash']>
}

/** @param ref the ApiKey that the proof is for */
export function drawValue(ref: ObjectRef): DrawnValue {
  const { credential: value } = mintCredential()
  return {
    value,
    hash: { sha256: hexOf(hashCredential(value)), hint: credentialPrefix(value), proof: hexOf(proofOf(value, ref)) },
  }
}
