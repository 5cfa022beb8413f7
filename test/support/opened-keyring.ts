import type { KubePort } from '#kube/port.ts'
import { Keyring } from '../../operator/shards/keyring.ts'
import { ManualClock } from './manual-clock.ts'

/** A keyring of two shards without a bound for a namespace, loaded. */
export async function openedKeyring(kube: KubePort, clock = new ManualClock()): Promise<Keyring> {
  const hooks = { assertLeading: () => undefined, warn: () => undefined }
  const keyring = new Keyring({ kube, namespace: 'headgate', clock, shards: 2, maxModelBytesPerNamespace: Infinity, ...hooks })
  await keyring.load()
  return keyring
}
