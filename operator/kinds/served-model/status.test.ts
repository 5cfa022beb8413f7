import { describe, expect, test } from 'vitest'
import { servedModel } from '../../../test/support/objects.ts'
import { surroundings } from '../../../test/support/observed-model.ts'
import { desiredModel } from './desired.ts'
import type { Confirmation } from '../../projection/acknowledgements.ts'
import type { ModelSurroundings, ObservedBackend, ObservedCredential } from './observed.ts'
import { type ModelProgress, statusOf } from './status.ts'

const NOW = Date.UTC(2026, 0, 2)
const DONE: Confirmation = { state: 'Acknowledged', ready: 2, total: 2, missing: [] }
const PROGRESS: ModelProgress = { confirmation: DONE, storeAvailable: true, mountedForMs: Infinity }
const FOUND: ObservedCredential = { state: 'Found', sum: 'ab'.repeat(32), origins: new Set() }
type Status = ReturnType<typeof statusOf>

function backend(name: string, ready: number, total = ready, change: Partial<ObservedBackend> = {}): ObservedBackend {
  const addresses = Array.from({ length: ready }, (_, index) => `10.0.0.${index + 1}:80`)
  return { name, service: { found: true, ready: addresses, total }, credential: { state: 'NotUsed' }, reachable: undefined, ...change }
}

function around(backends: ObservedBackend[], change: Partial<ModelSurroundings> = {}): ModelSurroundings {
  const specs = backends.map(({ name, credential }) => ({
    name,
    service: { name, port: 8000 },
    ...(credential.state === 'NotUsed' ? {} : { authSecretRef: { name: 'upstream' } }),
  }))
  const model = servedModel('llama', { backends: specs, aliases: ['small'] }, { uid: 'u', generation: 3 })
  return surroundings(model, backends, change)
}

function status(backends: ObservedBackend[], progress: Partial<ModelProgress> = {}, change: Partial<ModelSurroundings> = {}): Status {
  const seen = around(backends, change)
  return statusOf(seen, desiredModel(seen), { ...PROGRESS, ...progress }, NOW)
}

const found = ({ conditions }: Status, type: string) => conditions?.find((condition) => condition.type === type)
const reason = (written: Status, type: string): string => {
  const condition = found(written, type)
  return condition ? `${condition.status} ${condition.reason}` : 'absent'
}
const message = (written: Status, type: string): string => found(written, type)?.message ?? ''

describe('status of a ServedModel', () => {
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
    expect(written.conditions?.map(({ observedGeneration }) => observedGeneration)).toEqual([3, 3, 3, 3])
  })

  test('a column shows the price; without a price the model works, and the condition Priced names the keys that cannot call it', () => {
    const model = servedModel('llama', { pricing: { inputPerMillion: '0.15', outputPerMillion: '0.60' } }, { uid: 'u', generation: 3 })
    const priced = status([backend('one', 1)], {}, { model })
    expect([reason(priced, 'Priced'), priced.summary?.price]).toEqual(['True Priced', '0.15/0.60'])
    const pricing = { inputPerMillion: '0', outputPerMillion: '0', perRequest: '0.002' }
    const perCall = status([backend('one', 1)], {}, { model: servedModel('whisper', { pricing }) })
    expect(perCall.summary?.price).toBe('0/0 + 0.002/call')
    const unpriced = status([backend('one', 1)])
    expect([reason(unpriced, 'Priced'), reason(unpriced, 'Ready'), unpriced.summary?.price]).toEqual([
      'False PriceMissing',
      'True Ready',
      undefined,
    ])
    const free = servedModel('llama', { pricing: { inputPerMillion: '0', outputPerMillion: '0' } })
    expect(reason(status([backend('one', 1)], {}, { model: free }), 'Priced'), 'zero is a price').toBe('True Priced')
  })

  test('pods that still start are reported as NoEndpoints, not as a network error', () => {
    for (const starting of [backend('one', 0, 2), backend('one', 0, 0)]) {
      const written = status([starting])
      expect(reason(written, 'BackendsHealthy')).toBe('False NoEndpoints')
      expect(reason(written, 'Ready')).toBe('False NoEndpoints')
    }
  })

  test('a backend with ready pods that a gateway cannot reach is Unreachable, and named', () => {
    const written = status([backend('one', 2, 2, { reachable: { up: 0, total: 2 } })])
    expect(reason(written, 'BackendsHealthy')).toBe('False Unreachable')
    expect(message(written, 'BackendsHealthy')).toContain('one (0/2)')
    expect(reason(written, 'Ready')).toBe('False NoEndpoints')
  })

  test('with some unusable endpoints the backends are Degraded, and the model stays Ready', () => {
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

  test('a backend that the record leaves out is not healthy, even if its endpoints are ready', () => {
    const model = servedModel('llama', { backends: [{ name: 'one', url: 'http://169.254.169.254' }] }, { uid: 'u', generation: 3 })
    const refused = status([backend('one', 0, 0, { service: undefined })], {}, { model })
    expect(reason(refused, 'Accepted')).toBe('False AddressRefused')
    expect(reason(refused, 'BackendsHealthy')).toBe('False NotAccepted')
    expect(message(refused, 'BackendsHealthy')).toBe(message(refused, 'Accepted'))
    expect(refused).toMatchObject({ backends: [{ name: 'one', ready: 0, total: 1 }], summary: { backends: '0/1' } })
    const broken = backend('two', 2, 2, { credential: { state: 'NotFound', problem: 'Secret t does not exist' } })
    const partly = status([backend('one', 1), broken])
    expect(reason(partly, 'BackendsHealthy')).toBe('False Degraded')
    expect(message(partly, 'BackendsHealthy')).toBe('Not fully usable: two (0/2).')
  })

  test.each<[string, Partial<ModelProgress>, string]>([
    [
      'a pod that has not acknowledged it',
      { confirmation: { state: 'Waiting', ready: 1, total: 2, missing: ['gateway-1'] } },
      '1 of 2 gateway pods have the model; not yet: gateway-1.',
    ],
    ['no gateway', { confirmation: { state: 'NoGateways', ready: 0, total: 0, missing: [] } }, 'No gateway pod serves.'],
    ['acknowledgements that cannot be read', { confirmation: { ...DONE, state: 'Unknown' } }, 'Redis does not answer'],
    ['a store that does not answer', { confirmation: undefined, storeAvailable: false }, 'Redis does not answer'],
    ['a write under way', { confirmation: undefined }, 'being written to Redis'],
  ])('Ready is NotProgrammed for %s, and the message says so', (_what, progress, text) => {
    const written = status([backend('one', 1)], progress)
    expect(reason(written, 'Ready')).toBe('False NotProgrammed')
    expect(message(written, 'Ready')).toContain(text)
    expect(reason(written, 'Stalled')).toBe('absent')
  })

  test('Ready waits for the acknowledgement of a changed manifest, and not for changed endpoints', () => {
    const before = status([backend('one', 1)])
    const late = { confirmation: { state: 'Waiting', ready: 1, total: 2, missing: ['gateway-1'] } } as const
    const { model } = around([backend('one', 1)])
    expect(reason(status([backend('one', 2)], late, { model: { ...model, status: before } }), 'Ready')).toBe('True Ready')
    const edited = { ...model, status: before, metadata: { ...model.metadata, generation: 4 } }
    expect(reason(status([backend('one', 2)], late, { model: edited }), 'Ready')).toBe('False NotProgrammed')
  })

  test('a wrong backend makes the model NotAccepted, with the cause in both conditions', () => {
    const broken = backend('one', 1, 1, { credential: { state: 'NotFound', problem: 'Secret t does not exist' } })
    const written = status([broken, backend('two', 1)])
    expect(reason(written, 'Accepted')).toBe('False SecretNotFound')
    expect(reason(written, 'Ready')).toBe('False NotAccepted')
    expect(message(written, 'Ready')).toContain('Secret t does not exist')
  })

  test('a model that lost an alias stays Ready; a model that lost its served name is Stalled, since only another name helps', () => {
    const alias = status([backend('one', 1)], {}, { lostNames: [{ name: 'small', winner: 'other/old' }] })
    expect([reason(alias, 'Accepted'), reason(alias, 'Ready'), reason(alias, 'Stalled')]).toEqual([
      'False NameConflict',
      'True Ready',
      'absent',
    ])
    const name = status([backend('one', 1)], {}, { lostNames: [{ name: 'llama', winner: 'other/old' }] })
    expect([reason(name, 'Accepted'), reason(name, 'Ready'), reason(name, 'Stalled')]).toEqual([
      'False NameConflict',
      'False NotAccepted',
      'True NameConflict',
    ])
  })

  test.each<[string, Partial<ModelSurroundings>]>([
    ['NamespaceLimitReached', { hasPlace: false }],
    ['CredentialsFull', { mountRefusal: 'no room' }],
  ])('%s ends by itself as soon as there is room, so the model is not Stalled', (expected, change) => {
    const written = status([backend('one', 1, 1, { credential: FOUND })], {}, change)
    expect([reason(written, 'Accepted'), reason(written, 'Ready'), reason(written, 'Stalled')]).toEqual([
      `False ${expected}`,
      'False NotAccepted',
      'absent',
    ])
  })

  test('a model that may not be published is Ready for its own namespace, and the message says so', () => {
    const written = status([backend('one', 1)], {}, { publishing: 'NotAllowed' })
    expect([reason(written, 'Accepted'), reason(written, 'Ready')]).toEqual(['False PublishingNotAllowed', 'True Ready'])
    expect(message(written, 'Ready')).toBe('Keys of this namespace can call the model.')
  })

  test('a credential on its way to the pods is reported as NotProgrammed, not as NoEndpoints', () => {
    const waiting = backend('one', 1, 1, { service: undefined, credential: FOUND, reachable: { up: 0, total: 1 } })
    const spec = { backends: [{ name: 'one', service: { name: 'x', port: 1 }, authSecretRef: { name: 'upstream' } }] }
    const model = servedModel('llama', spec, { uid: 'u', generation: 3 })
    const early = status([waiting], { mountedForMs: 5_000 }, { model })
    expect(reason(early, 'Ready')).toBe('False NotProgrammed')
    expect(message(early, 'Ready')).toContain('The credential of backends[one] is on its way')
    expect(reason(status([waiting], { mountedForMs: 120_000 }, { model }), 'Ready')).toBe('False NoEndpoints')
  })
})
