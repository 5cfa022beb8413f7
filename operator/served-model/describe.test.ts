import { describe as group, expect, test } from 'vitest'
import { servedModel } from '../../test/support/objects.ts'
import type { Confirmation } from '../projection/acknowledgements.ts'
import { decide } from './decide.ts'
import { describe } from './describe.ts'
import type { ObservedBackend, ObservedModel } from './observed.ts'

const NOW = Date.UTC(2026, 0, 2)
const DONE: Confirmation = { ready: 2, total: 2, missing: [], known: true }
type Status = ReturnType<typeof describe>

function backend(name: string, ready: number, total = ready, change: Partial<ObservedBackend> = {}): ObservedBackend {
  const addresses = Array.from({ length: ready }, (_, index) => `10.0.0.${index + 1}:80`)
  return { name, service: { found: true, ready: addresses, total }, token: { state: 'NotUsed' }, reachable: undefined, ...change }
}

function status(backends: ObservedBackend[], confirmation: Confirmation | undefined = DONE, change: Partial<ObservedModel> = {}): Status {
  const spec = { backends: backends.map(({ name }) => ({ name, service: { name, port: 8000 } })), aliases: ['small'] }
  const model = servedModel('llama', spec, { uid: 'u', generation: 3 })
  const observed = { model, lostNames: [], backends, selectedNamespaces: [], allowLoopback: false, ...change }
  return describe(observed, decide(observed), confirmation, NOW)
}

const reason = ({ conditions }: Status, type: string): string => {
  const found = conditions?.find((condition) => condition.type === type)
  return `${found?.status} ${found?.reason}`
}
const message = ({ conditions }: Status, type: string): string => conditions?.find((condition) => condition.type === type)?.message ?? ''

group('status of a ServedModel', () => {
  test('a model with all its endpoints, known to every gateway, is Ready', () => {
    const written = status([backend('one', 2), backend('two', 1)])
    expect(reason(written, 'Ready')).toBe('True Ready')
    expect(reason(written, 'BackendsHealthy')).toBe('True Healthy')
    expect(written).toMatchObject({
      observedGeneration: 3,
      servedName: 'llama',
      backends: [
        { name: 'one', ready: 2, total: 2 },
        { name: 'two', ready: 1, total: 1 },
      ],
      summary: { backends: '2/2', aliases: 'small' },
    })
    expect(written.conditions?.map(({ observedGeneration }) => observedGeneration)).toEqual([3, 3, 3])
  })

  test('pods that start are no reason to look at the network: NoEndpoints', () => {
    for (const starting of [backend('one', 0, 2), backend('one', 0, 0)]) {
      const written = status([starting])
      expect(reason(written, 'BackendsHealthy')).toBe('False NoEndpoints')
      expect(reason(written, 'Ready')).toBe('False NoEndpoints')
    }
  })

  test('ready pods that a gateway cannot reach are Unreachable, and named', () => {
    const written = status([backend('one', 2, 2, { reachable: { up: 0, total: 2 } })])
    expect(reason(written, 'BackendsHealthy')).toBe('False Unreachable')
    expect(message(written, 'BackendsHealthy')).toContain('one (0/2)')
    expect(reason(written, 'Ready')).toBe('False NoEndpoints')
  })

  test('some that cannot be used are Degraded, and the model stays Ready', () => {
    const written = status([backend('one', 1, 2), backend('two', 0), backend('three', 1)])
    expect(reason(written, 'BackendsHealthy')).toBe('False Degraded')
    expect(message(written, 'BackendsHealthy')).toBe('Not fully usable: two (0/0), one (1/2).')
    expect(reason(written, 'Ready')).toBe('True Ready')
    expect(written.summary?.backends).toBe('2/3')
  })

  test('a url backend counts as one endpoint', () => {
    expect(status([backend('one', 0, 0, { service: undefined })])).toMatchObject({ backends: [{ ready: 1, total: 1 }] })
    expect(status([backend('one', 0, 0, { service: undefined, reachable: { up: 0, total: 1 } })])).toMatchObject({
      backends: [{ ready: 0, total: 1 }],
    })
  })

  test.each<[string, Confirmation | undefined, string]>([
    [
      'a pod that has not acknowledged it',
      { ready: 1, total: 2, missing: ['gateway-1'], known: true },
      '1 of 2 gateway pods have the model; not yet: gateway-1.',
    ],
    ['no gateway', { ready: 0, total: 0, missing: [], known: true }, 'No gateway pod serves.'],
    ['a store that does not answer', { ...DONE, known: false }, 'Redis does not answer'],
    ['a store that did not take it', undefined, 'Redis does not answer'],
  ])('NotProgrammed for %s', (_what, confirmation, text) => {
    const model = [backend('one', 1)]
    const written = confirmation === undefined ? describeWithout(model) : status(model, confirmation)
    expect(reason(written, 'Ready')).toBe('False NotProgrammed')
    expect(message(written, 'Ready')).toContain(text)
  })

  test('Ready waits for the first programming only: a change of endpoints does not make it flap, a change of the manifest does', () => {
    const before = status([backend('one', 1)])
    const late: Confirmation = { ready: 1, total: 2, missing: ['gateway-1'], known: true }
    const model = servedModel('llama', {}, { uid: 'u', generation: 3 })
    const same: ObservedModel = {
      model: { ...model, status: before },
      lostNames: [],
      backends: [backend('one', 2)],
      selectedNamespaces: [],
      allowLoopback: false,
    }
    expect(reason(describe(same, decide(same), late, NOW), 'Ready')).toBe('True Ready')
    const edited: ObservedModel = { ...same, model: { ...same.model, metadata: { ...same.model.metadata, generation: 4 } } }
    expect(reason(describe(edited, decide(edited), late, NOW), 'Ready')).toBe('False NotProgrammed')
  })

  test('a wrong backend makes it NotAccepted, with the cause in both conditions', () => {
    const written = status([backend('one', 1, 1, { token: { state: 'NotFound', problem: 'Secret t does not exist' } }), backend('two', 1)])
    expect(reason(written, 'Accepted')).toBe('False SecretNotFound')
    expect(reason(written, 'Ready')).toBe('False NotAccepted')
    expect(message(written, 'Ready')).toContain('Secret t does not exist')
  })

  test('a lost alias leaves it Ready, a lost served name does not', () => {
    const alias = status([backend('one', 1)], DONE, { lostNames: [{ name: 'small', winner: 'other/old' }] })
    expect([reason(alias, 'Accepted'), reason(alias, 'Ready')]).toEqual(['False NameConflict', 'True Ready'])
    const name = status([backend('one', 1)], DONE, { lostNames: [{ name: 'llama', winner: 'other/old' }] })
    expect([reason(name, 'Accepted'), reason(name, 'Ready')]).toEqual(['False NameConflict', 'False NotAccepted'])
  })

  test('a long list of aliases is shortened for the column', () => {
    const aliases = Array.from({ length: 16 }, (_, index) => `a-rather-long-alias-${index}`)
    const model = servedModel('llama', { aliases })
    const observed: ObservedModel = { model, lostNames: [], backends: [backend('one', 1)], selectedNamespaces: [], allowLoopback: false }
    expect(describe(observed, decide(observed), DONE, NOW).summary?.aliases).toMatch(/^.{59}…$/)
  })

  function describeWithout(backends: ObservedBackend[]): Status {
    const observed: ObservedModel = { model: servedModel('llama'), lostNames: [], backends, selectedNamespaces: [], allowLoopback: false }
    return describe(observed, decide(observed), undefined, NOW)
  }
})
