import { describe, expect, test } from 'vitest'
import { servedModel } from '../../test/support/objects.ts'
import { isOlder, lostNames, namesOf, servedName } from './names.ts'

type Spec = Parameters<typeof servedModel>[1]

/** A model made in that second. */
function model(name: string, second: number, spec: Spec = {}, namespace = 'shop') {
  const creationTimestamp = `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`
  return servedModel(name, spec, { namespace, uid: `uid-${name}`, creationTimestamp })
}

const ALL = { allowedNamespaces: { from: 'All' } } as const

describe('names of a ServedModel', () => {
  test('it is called by its servedName, else by the name of the object, and by its aliases', () => {
    expect(servedName(servedModel('llama'))).toBe('llama')
    expect(servedName(servedModel('llama', { servedName: 'llama-3.1-8b' }))).toBe('llama-3.1-8b')
    expect(namesOf(servedModel('llama', { aliases: ['small', 'llama'] }))).toEqual(['llama', 'small'])
  })

  test('the older one keeps a name, whether served or alias, and only that name is lost', () => {
    const old = model('old', 1, { servedName: 'a', aliases: ['b'] })
    const young = model('young', 2, { servedName: 'b', aliases: ['a', 'c'] })
    expect(lostNames(young, [old, young])).toEqual([
      { name: 'a', winner: 'shop/old' },
      { name: 'b', winner: 'shop/old' },
    ])
    expect(lostNames(old, [old, young])).toEqual([])
  })

  test('two made in the same second are told apart by uid, the same way from both sides', () => {
    const [a, b] = [model('a', 1, { servedName: 'x' }), model('b', 1, { servedName: 'x' })]
    expect([isOlder(a, b), isOlder(b, a)]).toEqual([true, false])
    expect(lostNames(a, [a, b])).toEqual([])
    expect(lostNames(b, [a, b])).toHaveLength(1)
  })

  test.each<[string, Spec, Spec, number]>([
    ['both are for their own namespaces', {}, {}, 0],
    ['the younger one is for its own namespace', ALL, {}, 0],
    ['the older one is for its own namespace', {}, ALL, 0],
    ['both are open to others', ALL, ALL, 1],
    ['one is open to some', ALL, { allowedNamespaces: { from: 'Selector', selector: { matchLabels: { a: 'b' } } } }, 1],
  ])('in different namespaces, when %s, the younger one loses %#', (_what, older, younger, lost) => {
    const old = model('old', 1, { ...older, servedName: 'x' }, 'there')
    const young = model('young', 2, { ...younger, servedName: 'x' }, 'here')
    expect(lostNames(young, [old])).toHaveLength(lost)
  })
})
