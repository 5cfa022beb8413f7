import { describe, expect, test } from 'vitest'
import type { ModelRecord } from '#contract/records/model-record.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { servedModel } from '../../../test/support/objects.ts'
import { surroundings } from '../../../test/support/observed-model.ts'
import { refOf } from '#kube/port.ts'
import { desiredModel } from './desired.ts'
import { ModelMemory } from './model-memory.ts'

type Spec = NonNullable<Parameters<typeof servedModel>[1]>
type Backends = NonNullable<Spec['backends']>
const SUM = 'ab'.repeat(32)
const backend = { name: 'one', url: 'https://models.example', authSecretRef: { name: 'upstream' } }
const model = (spec: Spec = { backends: [backend] }) => servedModel('llama', spec, { uid: 'u' })

/** The record that an earlier process wrote for a model. */
function recordOf(spec: Spec): ModelRecord {
  const backends = model(spec).spec.backends.map(({ name, service }) => ({
    name,
    service: service && { found: true as const, ready: [], total: 0 },
    credential: { state: 'Adopted' as const, sum: SUM },
    reachable: undefined,
  }))
  const { record } = desiredModel(surroundings(model(spec), backends))
  if (!record) throw new Error('no record')
  return record
}

describe('an adopted record', () => {
  test('until the Secret is read, the check sum of the record stands for the credential', () => {
    const memory = new ModelMemory(new ManualClock())
    memory.adopt(model(), '', recordOf({ backends: [backend] }))
    expect(memory.adoptedCredential('u', model().spec.backends[0]!)).toEqual({ sum: SUM })
    memory.forget(refOf(model()), 'u')
    expect(memory.adoptedCredential('u', model().spec.backends[0]!)).toBeUndefined()
  })

  test.each<[string, Backends]>([
    ['another url', [{ ...backend, url: 'https://evil.example' }]],
    ['another Secret', [{ ...backend, authSecretRef: { name: 'other' } }]],
  ])('a backend that is edited to %s afterwards does not get the credential', (_what, backends) => {
    const memory = new ModelMemory(new ManualClock())
    memory.adopt(model(), '', recordOf({ backends: [backend] }))
    expect(memory.adoptedCredential('u', model({ backends }).spec.backends[0]!)).toBeUndefined()
  })

  test.each<[string, Backends]>([
    ['another url', [{ ...backend, url: 'https://evil.example' }]],
    ['a Service', [{ name: 'one', service: { name: 'evil', port: 80 }, authSecretRef: { name: 'upstream' } }]],
    ['another name', [{ ...backend, name: 'two' }]],
  ])('a backend that was edited to %s while no operator ran does not get the credential', (_what, backends) => {
    const memory = new ModelMemory(new ManualClock())
    memory.adopt(model({ backends }), '', recordOf({ backends: [backend] }))
    expect(memory.adoptedCredential('u', model({ backends }).spec.backends[0]!)).toBeUndefined()
  })

  test('a Service backend keeps the adopted credential', () => {
    const backends: Backends = [{ name: 'one', service: { name: 'llama', port: 80 }, authSecretRef: { name: 'upstream' } }]
    const memory = new ModelMemory(new ManualClock())
    memory.adopt(model({ backends }), '', recordOf({ backends }))
    expect(memory.adoptedCredential('u', model({ backends }).spec.backends[0]!)).toEqual({ sum: SUM })
  })
})
