import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { cacheable, type EndpointSlice, endpointSlices, leases, type Service, services } from './resources.ts'

const written = {
  name: 'llama',
  namespace: 'shop',
  uid: 'u',
  resourceVersion: '7',
  annotations: { team: 'shop' },
  managedFields: [{ manager: 'helm' }],
}
const kept = { name: 'llama', namespace: 'shop', uid: 'u', resourceVersion: '7' }

test('a cached Service has its name, its type and its ports alone', () => {
  const ports = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8_000, nodePort: 30_000 }]
  const service = {
    metadata: { ...written, labels: { a: 'b' } },
    spec: { type: 'ClusterIP', ports, selector: { app: 'llama' } },
    status: {},
  }
  expect(cacheable(services, service as unknown as Service)).toEqual({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: kept,
    spec: { type: 'ClusterIP', ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  })
})

test('a cached Service of type ExternalName shows its type, although it has no ports', () => {
  const service = { metadata: written, spec: { type: 'ExternalName', externalName: 'other.example' } }
  expect(cacheable(services, service as unknown as Service).spec).toEqual({ type: 'ExternalName' })
})

test('a cached EndpointSlice has the name of its Service, its endpoints and its ports alone', () => {
  const endpoint = { addresses: ['10.0.0.1'], conditions: { ready: true }, targetRef: { kind: 'Pod', name: 'a' } }
  const slice = {
    metadata: { ...written, labels: { 'kubernetes.io/service-name': 'llama', heritage: 'x' }, ownerReferences: [{}] },
    addressType: 'IPv4',
    endpoints: [{ ...endpoint, nodeName: 'node-1', zone: 'a', hints: { forZones: [] } }],
    ports: [{ name: 'http', port: 8_000, protocol: 'TCP', appProtocol: 'http' }],
  }
  expect(cacheable(endpointSlices, slice as unknown as EndpointSlice)).toEqual({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...kept, labels: { 'kubernetes.io/service-name': 'llama' } },
    addressType: 'IPv4',
    endpoints: [endpoint],
    ports: [{ name: 'http', port: 8_000, protocol: 'TCP' }],
  })
})

test('a bookmark, which has no more than a version, is readable', () => {
  const bookmark = { metadata: { resourceVersion: '9' } }
  expect(cacheable(services, bookmark as unknown as Service).metadata).toEqual({ resourceVersion: '9' })
  expect(cacheable(endpointSlices, bookmark as unknown as EndpointSlice).metadata.resourceVersion).toBe('9')
})

test('the words of conditions are kept once for all objects', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const condition = (type: string): string =>
    JSON.stringify({
      type,
      reason: 'AcknowledgedByAll',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      message: 'Every gateway pod has it.'.repeat(4),
    })
  const text = `{"metadata":{"name":"a"},"status":{"conditions":[${['ProgrammedOnAll', 'AcceptedByAll', 'SecretIssued'].map(condition).join()}]}}`
  const bytesOf = (keep: (object: Service) => Service): number => {
    collect()
    const before = process.memoryUsage().heapUsed
    const kept = Array.from({ length: 5_000 }, () => keep(JSON.parse(text) as Service))
    collect()
    const bytes = process.memoryUsage().heapUsed - before
    expect(kept[4_999]).toMatchObject(JSON.parse(text) as object)
    return bytes / kept.length
  }
  const asParsed = bytesOf((object) => object)
  expect(bytesOf((object) => cacheable(leases, object as never) as never) / asParsed).toBeLessThan(0.7)
})
