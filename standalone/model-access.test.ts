import { describe, expect, test } from 'vitest'
import { apiKey, servedModel } from '../test/support/objects.ts'
import type { ServedModel } from '#api/served-model.ts'
import { accessOf, type KeyAccess, type Models } from './model-access.ts'

type Given = readonly [model: ServedModel, unusable?: string]
const models = (...given: Given[]): Models => ({
  all: given.map(([model, reason]) => ({ model, problem: reason === undefined ? undefined : { reason, weight: 'Warning' } })),
  labelsOf: (namespace) => ({ team: namespace }),
})
const model = (name: string, namespace = 'shop', spec: Parameters<typeof servedModel>[1] = {}): ServedModel =>
  servedModel(name, spec, { namespace })
const PUBLIC = { allowedNamespaces: { from: 'All' } } as const
const access = (allowed: string[], ...given: Given[]): KeyAccess => accessOf(apiKey('bot', { models: allowed }), models(...given))

describe('which model a key may call now', () => {
  test('is one of its own namespace before one of another namespace', () => {
    expect(access(['*'], [model('all', 'lab', PUBLIC)], [model('own')]).model).toBe('own')
    expect(access(['*'], [model('private', 'lab')], [model('all', 'lab', PUBLIC)]).model).toBe('all')
  })

  test('is a model that its list admits, by name, alias or pattern', () => {
    expect(access(['b*'], [model('a')], [model('b')])).toEqual({ model: 'b', problem: undefined })
    expect(access(['latest'], [model('a', 'shop', { aliases: ['latest'] })]).model).toBe('a')
    expect(access(['served'], [model('a', 'shop', { servedName: 'served' })]).model).toBe('served')
  })

  test('is one whose selector admits the namespace of the key', () => {
    const open = (team: string) => model('m', 'lab', { allowedNamespaces: { from: 'Selector', selector: { matchLabels: { team } } } })
    expect(access(['*'], [open('shop')]).model).toBe('m')
    expect(access(['*'], [open('other')]).model).toBeUndefined()
  })

  test('is neither an unusable model nor one whose name belongs to an unusable model', () => {
    expect(access(['*'], [model('a'), 'ServiceNotFound'], [model('b')]).model).toBe('b')
    expect(access(['*'], [model('a'), 'ServiceNotFound'], [model('a', 'lab', PUBLIC)]).model).toBeUndefined()
    expect(access(['*'], [model('loser', 'shop', { servedName: 'a' }), 'NameConflict'], [model('a')]).model).toBe('a')
  })
})

describe('the problem of the models of a key', () => {
  const problem = (allowed: string[], ...given: Given[]): string => {
    const { problem: found } = access(allowed, ...given)
    return found === undefined ? '' : `${found.headline}: ${found.text}`
  }

  test('is a name that no ServedModel has', () => {
    expect(problem(['nonexistent-model'], [model('a')])).toBe(
      'no model that this key may call yet: it allows nonexistent-model, and no ServedModel has that name. Correct spec.models, or add the ServedModel.',
    )
    expect(problem(['*'])).toBe('no model that this key may call yet: there is no ServedModel. Add one.')
    expect(problem(['a', 'typo'], [model('a')]), 'beside one that works').toBe(
      'check spec.models: it allows typo, and no ServedModel has that name. Correct spec.models, or add the ServedModel.',
    )
  })

  test('is a model that is not open to the namespace', () => {
    expect(problem(['private'], [model('private', 'lab')])).toContain(
      'it allows private, and ServedModel lab/private is not open to namespace shop. Open the ServedModel with allowedNamespaces, or create',
    )
    expect(problem(['*'], [model('private', 'lab')])).toContain('it allows *, and no ServedModel is open to namespace shop. Open')
    const open = model('one', 'lab', { ...PUBLIC, aliases: ['alias'] })
    expect(problem(['one', 'alias'], [model('one')], [open]), 'a lost name hides no alias').toBe('')
  })

  test('is that its models cannot be called, with the reason of each', () => {
    const why = problem(['*'], [model('a'), 'ServiceNotFound'], [model('b'), 'NotAnswering'])
    expect(why).toBe(
      'no model that this key may call yet: ServedModel shop/a is not usable (ServiceNotFound); ServedModel shop/b is not usable (NotAnswering).',
    )
  })

  test('is named for three of many', () => {
    expect(problem(['a', 'b', 'c', 'd', 'e'])).toMatch(/it allows c, and no ServedModel has that name; and 2 more\. Correct/)
  })
})
