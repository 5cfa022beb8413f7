/**
 * Secrets whose stored bytes the API server cannot decode, as after an error of encryption at rest. Only a write to etcd makes such Secrets. The
 * API server then loses its cache of all Secrets: it refuses watches, and lists with a selector.
 */
import type { ControlPlane } from './control-plane.ts'
import { ApiRefusal } from './kube-admin.ts'
import { waitFor } from './wait-for.ts'

interface StoredValue {
  readonly key: string
  readonly value: string
}

/** The API server retries to fill its cache at growing intervals, ms. */
const CACHE_DEADLINE_MS = 90_000

/** Breaks Secrets of a namespace, and waits until the API server has no cache of Secrets. @returns a function that restores both */
export async function breakSecrets(plane: ControlPlane, namespace: string, names: readonly string[]): Promise<() => Promise<void>> {
  const stored = await Promise.all(names.map((name) => storedSecret(plane, namespace, name)))
  for (const { key } of stored) await etcd(plane, 'put', { key, value: Buffer.from('k8s:enc:kms:v2:lost:').toString('base64') })
  await waitFor('lists of Secrets to be refused', async () => !(await isCached(plane)), { deadlineMs: CACHE_DEADLINE_MS, everyMs: 200 })
  return async () => {
    for (const { key, value } of stored) await etcd(plane, 'put', { key, value })
    await waitFor('lists of Secrets to be answered', () => isCached(plane), { deadlineMs: CACHE_DEADLINE_MS, everyMs: 200 })
  }
}

async function isCached(plane: ControlPlane): Promise<boolean> {
  try {
    await plane.admin.call('GET', '/api/v1/secrets?labelSelector=a%3Db')
    return true
  } catch (error) {
    if (error instanceof ApiRefusal && (error.status === 429 || error.status === 500)) return false
    throw error
  }
}

async function storedSecret(plane: ControlPlane, namespace: string, name: string): Promise<StoredValue> {
  const key = Buffer.from(`/registry/secrets/${namespace}/${name}`).toString('base64')
  const { kvs = [] } = (await etcd(plane, 'range', { key })) as { kvs?: readonly StoredValue[] }
  const [stored] = kvs
  if (!stored) throw new Error(`etcd holds no Secret ${namespace}/${name}`)
  return { key, value: stored.value }
}

async function etcd(plane: ControlPlane, call: 'range' | 'put', body: object): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${plane.address.etcdPort}/v3/kv/${call}`, { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`etcd answers ${answer.status}: ${await answer.text()}`)
  return answer.json()
}
