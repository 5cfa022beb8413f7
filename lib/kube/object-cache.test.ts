import { describe, expect, test } from 'vitest'
import { ObjectCache } from './object-cache.ts'
import type { KubeObject } from './port.ts'

function object(name: string, version: number | string, uid = `uid-${name}`): KubeObject {
  return { apiVersion: 'v1', kind: 'Thing', metadata: { name, namespace: 'shop', uid, resourceVersion: String(version) } }
}

function cacheWithLog(): { cache: ObjectCache<KubeObject>; log: string[]; errors: unknown[] } {
  const log: string[] = []
  const errors: unknown[] = []
  const cache = new ObjectCache((error) => errors.push(error))
  const short = (one: KubeObject | undefined): string => (one ? `${one.metadata.uid}@${one.metadata.resourceVersion}` : '-')
  cache.subscribe((before, after) => log.push(`${short(before)} > ${short(after)}`))
  return { cache, log, errors }
}

const names = (cache: ObjectCache<KubeObject>): string[] => [...cache.list()].map((each) => each.metadata.name)

describe('changes', () => {
  test('an unchanged object calls the listener once', () => {
    const { cache, log } = cacheWithLog()
    cache.put(object('a', 5))
    cache.put(object('a', 5))
    expect(log).toEqual(['- > uid-a@5'])
  })

  test('an event older than what is known changes nothing, also across a growing number of digits', () => {
    const { cache, log } = cacheWithLog()
    cache.put(object('a', 1000))
    cache.put(object('a', 999))
    cache.remove(object('a', 998))
    expect(cache.get({ namespace: 'shop', name: 'a' })?.metadata.resourceVersion).toBe('1000')
    expect(log).toHaveLength(1)
  })

  test('an object that was created again under the same name is a removal and an add for the listener', () => {
    const { cache, log } = cacheWithLog()
    cache.put(object('a', 5, 'old'))
    cache.put(object('a', 9, 'new'))
    expect(log).toEqual(['- > old@5', 'old@5 > -', '- > new@9'])
  })

  test('a listener that throws is reported, and the other listeners are still called', () => {
    const { cache, errors } = cacheWithLog()
    const heard: string[] = []
    cache.subscribe(() => {
      throw new Error('listener')
    })
    cache.subscribe((_before, after) => heard.push(after?.metadata.name ?? '-'))
    cache.put(object('a', 1))
    expect(heard).toEqual(['a'])
    expect(errors).toHaveLength(1)
  })
})

describe('a whole list', () => {
  test('missing objects are removals for the listener, and unchanged objects cause no call', () => {
    const { cache, log } = cacheWithLog()
    cache.replace([object('a', 1), object('b', 2), object('c', 3)])
    log.length = 0
    cache.replace([object('a', 1), object('c', 4)])
    expect(log).toEqual(['uid-b@2 > -', 'uid-c@3 > uid-c@4'])
    expect(names(cache)).toEqual(['a', 'c'])
  })

  test('of one namespace leaves the objects of the others', () => {
    const { cache } = cacheWithLog()
    const web = { ...object('b', 2), metadata: { ...object('b', 2).metadata, namespace: 'web' } }
    cache.replace([object('a', 1)], 'shop')
    cache.replace([web], 'web')
    cache.replace([], 'shop')
    expect(names(cache)).toEqual(['b'])
  })

  test('wins even if it is older, as after a restore of etcd from a backup', () => {
    const { cache } = cacheWithLog()
    cache.put(object('a', 1000))
    cache.replace([object('a', 50)])
    expect(cache.get({ namespace: 'shop', name: 'a' })?.metadata.resourceVersion).toBe('50')
    cache.put(object('a', 51))
    expect(cache.get({ namespace: 'shop', name: 'a' })?.metadata.resourceVersion).toBe('51')
  })
})

describe('indexes', () => {
  const byUid = (cache: ObjectCache<KubeObject>, uid: string): string[] => Array.from(cache.byIndex('uid', uid), (one) => one.metadata.name)

  test('find objects known before and after the index was added, and follow changes and deletions', () => {
    const { cache } = cacheWithLog()
    cache.put(object('a', 5))
    cache.addIndex('uid', (one) => [one.metadata.uid ?? ''])
    cache.put(object('b', 6))
    expect([byUid(cache, 'uid-a'), byUid(cache, 'uid-b')]).toEqual([['a'], ['b']])
    cache.put(object('a', 7, 'uid-new'))
    expect([byUid(cache, 'uid-a'), byUid(cache, 'uid-new')]).toEqual([[], ['a']])
    cache.remove(object('b', 8))
    expect(byUid(cache, 'uid-b')).toEqual([])
    cache.replace([object('c', 9)])
    expect([byUid(cache, 'uid-new'), byUid(cache, 'uid-c')]).toEqual([[], ['c']])
  })

  test('an object may stand under several values, and a listener sees the index as it is after the change', () => {
    const { cache } = cacheWithLog()
    cache.addIndex('letters', (one) => one.metadata.name.split(''))
    const seen: number[] = []
    cache.subscribe(() => seen.push([...cache.byIndex('letters', 'b')].length))
    cache.put(object('ab', 1))
    cache.put(object('bc', 2))
    cache.remove(object('ab', 3))
    expect(seen).toEqual([1, 2, 1])
  })

  test('a second index with the same name, and a lookup in a missing index, throw', () => {
    const { cache } = cacheWithLog()
    const none = (): string[] => []
    cache.addIndex('uid', none)
    expect(() => cache.addIndex('uid', none)).not.toThrow() // a second reader of the same cache
    expect(() => cache.addIndex('uid', () => [])).toThrow(/uid was added twice/)
    expect(() => [...cache.byIndex('name', 'a')]).toThrow(/no index name/)
  })
})

describe('an object that needs no more work', () => {
  test('leaves memory and every index without a word to the listeners, and comes back with the next change or list', () => {
    const { cache, log } = cacheWithLog()
    cache.addIndex('name', ({ metadata }) => [metadata.name])
    cache.put(object('a', 1))
    cache.forget({ namespace: 'shop', name: 'a' })
    cache.forget({ namespace: 'shop', name: 'never' })
    expect([names(cache), [...cache.byIndex('name', 'a')]]).toEqual([[], []])
    cache.remove(object('a', 2))
    expect(log).toEqual(['- > uid-a@1'])
    cache.put(object('a', 3))
    expect([names(cache), [...cache.byIndex('name', 'a')].length]).toEqual([['a'], 1])
    cache.forget({ namespace: 'shop', name: 'a' })
    cache.replace([object('a', 3)])
    expect(log).toEqual(['- > uid-a@1', '- > uid-a@3', '- > uid-a@3'])
  })
})
