import { describe, expect, test } from 'vitest'
import { servedModel } from '../../../test/support/objects.ts'
import type { ServedModel } from '#api/served-model.ts'
import type { ObjectRef } from '#kube/port.ts'
import { ModelRegistry, type RegistryChanges } from './model-registry.ts'

type Spec = NonNullable<Parameters<typeof servedModel>[1]>
const RULES = { publishingNamespaces: ['platform', 'evil'], hasNamespaceLabels: true }
const ALL: Spec = { allowedNamespaces: { from: 'All' } }
const BORN = Date.UTC(2026, 0, 1)

function model(name: string, second: number, spec: Spec = {}, namespace = 'shop'): ServedModel {
  const creationTimestamp = new Date(BORN + second * 1000).toISOString()
  return servedModel(name, spec, { namespace, uid: `uid-${namespace}-${name}`, creationTimestamp })
}
const names = (refs: readonly ObjectRef[]): string[] => refs.map(({ namespace, name }) => `${namespace}/${name}`).sort()
const seen = ({ affected, losers }: RegistryChanges) => ({ affected: names(affected), losers: names(losers) })

describe('ModelRegistry', () => {
  test('a model beyond the bound of its namespace gets its name as soon as a place is free, and not before', () => {
    const registry = new ModelRegistry(1, RULES)
    const [old, young] = [model('old', 1, { servedName: 'a' }), model('young', 2, { servedName: 'x' })]
    registry.update(undefined, old)
    registry.update(undefined, young)
    registry.update(undefined, model('elsewhere', 3, { ...ALL, servedName: 'x' }, 'evil'))
    expect([registry.hasPlace('uid-shop-old'), registry.hasPlace('uid-shop-young')]).toEqual([true, false])
    expect(seen(registry.update(old, undefined))).toEqual({ affected: ['shop/young'], losers: [] })
    expect(registry.hasPlace('uid-shop-young')).toBe(true)
  })

  test('a model that loses its place frees its names for the next model', () => {
    const registry = new ModelRegistry(1, RULES)
    registry.update(undefined, model('holder', 2, { ...ALL, servedName: 'x' }, 'platform'))
    registry.update(undefined, model('next', 3, { ...ALL, servedName: 'x' }, 'evil'))
    const changes = registry.update(undefined, model('restored', 1, { servedName: 'y' }, 'platform'))
    expect(seen(changes)).toEqual({ affected: ['evil/next', 'platform/holder'], losers: [] })
    expect(changes.takeovers.map(({ name }) => name)).toEqual(['x'])
  })

  test('only models that the administrator lets publish compete for names with other namespaces', () => {
    const registry = new ModelRegistry(10, RULES)
    registry.update(undefined, model('old', 1, { ...ALL, servedName: 'x' }, 'stranger'))
    registry.update(undefined, model('owner', 2, { ...ALL, servedName: 'x' }, 'platform'))
    registry.update(undefined, model('young', 3, { ...ALL, servedName: 'x' }, 'evil'))
    expect(registry.lostNames('uid-platform-owner')).toEqual([])
    expect(registry.lostNames('uid-evil-young')).toEqual([{ name: 'x', winner: 'platform/owner' }])
  })

  test('a Service or a credential leads to the models that use it at present', () => {
    const registry = new ModelRegistry(10, RULES)
    const before = model('llama', 1, {
      backends: [{ name: 'one', service: { name: 'a', port: 80 }, authSecretRef: { name: 's', key: 'k' } }],
    })
    const after = model('llama', 1, {
      backends: [{ name: 'one', service: { name: 'b', port: 80 }, authSecretRef: { name: 's', key: 'l' } }],
    })
    registry.update(undefined, before)
    expect(names(registry.usersOfService('shop', 'a'))).toEqual(['shop/llama'])
    expect(registry.usersOfService('other', 'a')).toEqual([])
    expect(registry.update(before, after).unusedCredentials).toEqual([{ namespace: 'shop', name: 's', key: 'k' }])
    expect(registry.usersOfService('shop', 'a')).toEqual([])
    expect(names(registry.usersOfCredential({ namespace: 'shop', name: 's', key: 'l' }))).toEqual(['shop/llama'])
  })

  test('a credential that another model uses does not count as unused', () => {
    const registry = new ModelRegistry(10, RULES)
    const spec: Spec = { backends: [{ name: 'one', url: 'https://x.example', authSecretRef: { name: 's' } }] }
    const [one, two] = [model('one', 1, spec), model('two', 2, spec)]
    for (const each of [one, two]) registry.update(undefined, each)
    expect(registry.update(one, undefined).unusedCredentials).toEqual([])
    expect(registry.update(two, undefined).unusedCredentials).toEqual([{ namespace: 'shop', name: 's', key: 'token' }])
  })

  test('a model that is being deleted counts as deleted', () => {
    const registry = new ModelRegistry(10, RULES)
    const old = model('old', 1, { servedName: 'x' })
    registry.update(undefined, old)
    registry.update(undefined, model('young', 2, { servedName: 'x' }))
    const deleting = { ...old, metadata: { ...old.metadata, deletionTimestamp: '2026-01-02T00:00:00Z' } }
    expect(seen(registry.update(old, deleting))).toEqual({ affected: ['shop/young'], losers: [] })
    expect(registry.refOf('uid-shop-old')).toBeUndefined()
    expect(seen(registry.update(deleting, undefined))).toEqual({ affected: [], losers: [] })
  })

  test('only published models with a selector are read when labels of namespaces change', () => {
    const registry = new ModelRegistry(10, RULES)
    const selecting: Spec = { allowedNamespaces: { from: 'Selector', selector: { matchLabels: { a: 'b' } } } }
    for (const namespace of ['platform', 'stranger']) registry.update(undefined, model('m', 1, selecting, namespace))
    registry.update(undefined, model('all', 2, ALL, 'platform'))
    expect([...registry.selecting()].map(({ metadata }) => metadata.namespace)).toEqual(['platform'])
  })

  describe('with 3,000 models of the same 17 names in one namespace', () => {
    const COUNT = 3_000
    const aliases = Array.from({ length: 16 }, (_, index) => `alias-${index}`)
    const many = Array.from({ length: COUNT }, (_, index) => model(`m${index}`, index, { servedName: 'same', aliases }))

    function filled(): ModelRegistry {
      const registry = new ModelRegistry(COUNT, RULES)
      for (const each of many) registry.update(undefined, each)
      return registry
    }

    /** ms of the fastest of some runs. */
    function quickestMs(runs: number, change: (run: number) => unknown): number {
      return Math.min(
        ...Array.from({ length: runs }, (_, run) => {
          const startedMs = performance.now()
          change(run)
          return performance.now() - startedMs
        }),
      )
    }

    test('an edit of a model without names costs less than a new registry and affects no other model', () => {
      const registry = filled()
      const changes: RegistryChanges[] = []
      const ms = quickestMs(5, (run) => {
        const index = 1500 + run
        changes.push(registry.update(many[index], model(`m${index}`, index, { servedName: 'other', aliases })))
      })
      for (const each of changes) expect(seen(each).affected).toEqual([])
      expect(seen(changes[0]!).losers).toEqual([])
      expect(ms).toBeLessThan(quickestMs(1, filled))
    })

    test('the deletion of the owner costs less than a new registry; the new owner is affected at once and the others in the background', () => {
      const registry = filled()
      const changes: RegistryChanges[] = []
      const ms = quickestMs(5, (run) => changes.push(registry.update(many[run], undefined)))
      changes.forEach((each, run) => {
        expect(names(each.affected)).toEqual([`shop/m${run + 1}`])
        expect(each.losers).toHaveLength(COUNT - 2 - run)
      })
      expect(ms).toBeLessThan(quickestMs(1, filled))
    })

    test('the bound of the namespace keeps all but the oldest out of the index', () => {
      const registry = new ModelRegistry(200, RULES)
      for (const each of many) registry.update(undefined, each)
      const { affected, losers } = registry.update(many[0], undefined)
      expect(names(affected)).toEqual(['shop/m1', 'shop/m200'])
      expect(losers).toHaveLength(198)
    })
  })
})
