/** Objects whose stored bytes the API server cannot decode, as after a mishap of encryption at rest. Only etcd itself can make them. */
import type { ControlPlane } from './control-plane.ts'

interface StoredValue {
  readonly key: string
  readonly value: string
}

/** Breaks a Secret where it is stored. @returns a function that restores it */
export async function breakSecret(plane: ControlPlane, namespace: string, name: string): Promise<() => Promise<void>> {
  const key = Buffer.from(`/registry/secrets/${namespace}/${name}`).toString('base64')
  const { kvs = [] } = (await etcd(plane, 'range', { key })) as { kvs?: readonly StoredValue[] }
  const [stored] = kvs
  if (!stored) throw new Error(`etcd holds no Secret ${namespace}/${name}`)
  await etcd(plane, 'put', { key, value: Buffer.from('k8s:enc:kms:v2:lost:').toString('base64') })
  return async () => {
    await etcd(plane, 'put', { key, value: stored.value })
  }
}

/** One call of etcd's JSON gateway; keys and values in base64. */
async function etcd(plane: ControlPlane, call: 'range' | 'put', body: object): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${plane.address.etcdPort}/v3/kv/${call}`, { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`etcd answers ${answer.status}: ${await answer.text()}`)
  return answer.json()
}
