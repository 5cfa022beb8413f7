import { describe, expect, test } from 'vitest'
import { service, slice } from '../../../test/support/objects.ts'
import type { EndpointSlice } from '#kube/resources.ts'
import { serviceEndpoints } from './observe.ts'

const ready = (slices: EndpointSlice[], port: { name?: string; port: number } = { port: 8000 }): readonly string[] => {
  const found = serviceEndpoints('llama', port.port, service('llama', port), slices)
  return found.found ? found.ready : []
}

describe('serviceEndpoints', () => {
  test('endpoints are the addresses and the port of the pods, sorted, from all slices', () => {
    const slices = [slice('llama', ['10.0.0.2', '10.0.0.10']), slice('llama', ['10.0.0.1'])]
    expect(ready(slices)).toEqual(['10.0.0.10:8080', '10.0.0.1:8080', '10.0.0.2:8080'].sort())
  })

  test('each port of the Service has its own endpoints, found by the name of the port', () => {
    const ports = [
      { name: 'api', port: 8080 },
      { name: 'metrics', port: 9090 },
    ]
    expect(ready([slice('llama', ['10.0.0.1'], { ports })], { name: 'metrics', port: 81 })).toEqual(['10.0.0.1:9090'])
    expect(ready([slice('llama', ['10.0.0.1'], { ports })], { name: 'other', port: 81 })).toEqual([])
  })

  test('a Service of type ExternalName is none: its name leads to any other namespace', () => {
    const external = service('llama', { port: 80 })
    const found = serviceEndpoints('llama', 80, { ...external, spec: { ...external.spec, type: 'ExternalName' } }, [])
    expect(found).toEqual({ found: false, problem: expect.stringContaining('is of type ExternalName') })
  })

  test('IPv6 addresses stand in brackets, and an address in two slices counts once', () => {
    const six = slice('llama', ['fd00::1'], { addressType: 'IPv6' })
    expect(ready([six, six])).toEqual(['[fd00::1]:8080'])
  })

  test('only ready pods that do not terminate are called; all pods are counted', () => {
    const endpoints = [
      { addresses: ['10.0.0.1'], conditions: { ready: true } },
      { addresses: ['10.0.0.2'], conditions: { ready: false } },
      { addresses: ['10.0.0.3'], conditions: { ready: true, terminating: true } },
      { addresses: ['10.0.0.4'] }, // an absent condition means ready
      { addresses: ['10.0.0.5'], conditions: { ready: null } },
    ]
    const found = serviceEndpoints('llama', 8000, service('llama'), [slice('llama', endpoints)])
    expect(found).toEqual({ found: true, ready: ['10.0.0.1:8080', '10.0.0.4:8080', '10.0.0.5:8080'], total: 5 })
  })

  test('a missing Service and a missing port have different messages', () => {
    expect(serviceEndpoints('llama', 8000, undefined, [])).toEqual({
      found: false,
      problem: 'Service llama does not exist in this namespace',
    })
    expect(serviceEndpoints('llama', 81, service('llama'), [])).toEqual({ found: false, problem: 'Service llama has no port 81' })
  })

  test('a Service without pods is found and has none', () => {
    expect(serviceEndpoints('llama', 8000, service('llama'), [])).toEqual({ found: true, ready: [], total: 0 })
  })

  test('of more than 1000 endpoints, the record has the first 1000', () => {
    const many = Array.from({ length: 1500 }, (_, index) => `10.0.${Math.floor(index / 250)}.${index % 250}`)
    expect(ready([slice('llama', many)])).toHaveLength(1000)
  })
})
