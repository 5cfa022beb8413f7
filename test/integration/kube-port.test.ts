import { inject } from 'vitest'
import { systemClock } from '#platform/clock.ts'
import { KubeCredentials } from '#kube/kube-credentials.ts'
import { RawClient } from '#kube/raw-client.ts'
import { namespaces } from '#kube/resources.ts'
import { Transport } from '#kube/transport.ts'
import { describeKubePort } from '../contract/kube-port.suite.ts'

const transport = new Transport({ credentials: new KubeCredentials(inject('kubeconfig')), clock: systemClock })
const port = new RawClient({ transport, clock: systemClock })
let count = 0

describeKubePort('The API server through RawClient', async () => {
  const namespace = `kube-port-${process.pid}-${count++}`
  await port.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  return { port, namespace }
})
