/** What must be on the gateways when a leader takes over, and what of it only the projection still knows. */
import type { KeyHash } from '../../gateway/shared/credential.ts'
import { decodeKeyRecord, type KeyRecord } from '../../gateway/shared/key-record.ts'
import type { ApiKey } from '../api/apikey.ts'
import type { ProjectionChange } from '../projection/store.ts'
import type { ApiKeyDeps } from './deps.ts'
import { gatherSecret } from './gather.ts'
import { lineOf, recordText } from './policy.ts'

/** Every key of the keyring under the policy of the present manifests. */
export function keyRecords(deps: Pick<ApiKeyDeps, 'keyring' | 'apiKeys'>): ProjectionChange[] {
  const records: ProjectionChange[] = []
  for (const line of deps.keyring.lines()) {
    const apiKey = deps.apiKeys.get({ namespace: line.ns, name: line.name })
    const isSame = apiKey?.metadata.uid === line.uid && apiKey.metadata.deletionTimestamp === undefined
    const text = recordText(isSame && line.deleted === null ? lineOf(apiKey, line.ver, line.rev) : line)
    if (text !== undefined) records.push({ kind: 'key', op: 'put', id: line.uid, text })
  }
  return records
}

/**
 * Makes the line of a key that the keyring lost again, from the record that the gateways still use: only for an ApiKey that is there and
 * whose status, or whose Secret, names the very same key.
 * @returns the record to keep; undefined when nobody owns it any more
 * @throws KubeError when the line could not be written
 */
export async function rescue(uid: string, text: string, deps: ApiKeyDeps): Promise<string | undefined> {
  const apiKey = [...deps.apiKeys.list()].find(({ metadata }) => metadata.uid === uid)
  if (!apiKey || apiKey.metadata.deletionTimestamp !== undefined || deps.keyring.get(uid)) return undefined
  const hash = apiKey.status?.keyID === undefined ? await deliveredHash(apiKey, deps) : undefined
  const verifier = readRecord(text)?.ver.find(({ id, h }) => id === apiKey.status?.keyID || h === hash)
  if (!verifier) return undefined
  const known = { n: 1, state: 'Issued', created: createdOf(apiKey, deps), prefix: apiKey.status?.prefix ?? '' } as const
  const line = lineOf(apiKey, [{ ...verifier, ...known }], deps.projection.rev)
  await deps.keyring.commit(line)
  deps.recordEvent(apiKey, 'KeyringRestored', 'The keyring had lost the key; it was restored from Redis. The key works on.')
  return recordText(line)
}

/** A crash between delivery and status leaves the Secret as the only one who knows that the key was issued. */
async function deliveredHash(apiKey: ApiKey, deps: ApiKeyDeps): Promise<KeyHash | undefined> {
  const secret = await gatherSecret(apiKey, deps)
  return secret.state === 'Ours' ? secret.hash : undefined
}

function createdOf(apiKey: ApiKey, deps: ApiKeyDeps): number {
  return Date.parse(apiKey.status?.verifiers?.[0]?.createTime ?? '') || deps.clock.now()
}

function readRecord(text: string): KeyRecord | undefined {
  try {
    return decodeKeyRecord(text)
  } catch {
    return undefined // of another version, or damaged: nothing to restore from
  }
}
