import { beforeEach, describe, expect, test } from 'vitest'
import { NamespacePlaces, type PlaceSeeker } from './namespace-places.ts'

const seeker = (name: string, createdMs: number, namespace = 'shop'): PlaceSeeker => ({
  uid: `uid-${name}`,
  ref: { namespace, name },
  createdMs,
})

describe('NamespacePlaces', () => {
  let places: NamespacePlaces<PlaceSeeker>
  const holders = (...names: string[]): boolean[] => names.map((name) => places.hasPlace(`uid-${name}`))

  beforeEach(() => {
    places = new NamespacePlaces(2)
    for (const [name, age] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
      ['d', 4],
    ] as const)
      places.put(seeker(name, age))
  })

  test('the oldest objects have a place and the youngest wait; other namespaces are not affected', () => {
    places.put(seeker('elsewhere', 9, 'other'))
    expect(holders('a', 'b', 'c', 'd', 'elsewhere')).toEqual([true, true, false, false, true])
  })

  test('a freed place goes to the oldest waiting object', () => {
    expect(places.delete('uid-a').gained?.ref.name).toBe('c')
    expect(holders('b', 'c', 'd')).toEqual([true, true, false])
  })

  test('the deletion of a waiting object frees no place', () => {
    expect(places.delete('uid-c')).toEqual({ gained: undefined, lost: undefined })
    expect(places.delete('uid-c')).toEqual({ gained: undefined, lost: undefined })
    expect(holders('a', 'b', 'd')).toEqual([true, true, false])
  })

  test('an older object that is seen later takes the place of the youngest object', () => {
    expect(places.put(seeker('restored', 0)).lost?.ref.name).toBe('b')
    expect(holders('restored', 'a', 'b')).toEqual([true, true, false])
  })

  test('a repeated event changes no place', () => {
    for (const [name, age] of [
      ['a', 1],
      ['c', 3],
    ] as const)
      expect(places.put(seeker(name, age))).toEqual({ gained: undefined, lost: undefined })
    expect(holders('a', 'b', 'c')).toEqual([true, true, false])
  })
})
