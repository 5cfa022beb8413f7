import { beforeEach, describe, expect, test } from 'vitest'
import { type NameCandidate, type NameChanges, NameIndex } from './name-index.ts'

function candidate(
  name: string,
  createdMs: number,
  names: string[],
  change: Partial<NameCandidate> & { namespace?: string } = {},
): NameCandidate {
  const { namespace = 'shop', ...rest } = change
  return { uid: `uid-${name}`, ref: { namespace, name }, createdMs, names, isPublished: false, ...rest }
}

const refs = (set: ReadonlySet<NameCandidate>): string[] => [...set].map(({ ref }) => `${ref.namespace}/${ref.name}`).sort()
const seen = ({ gained, lost, takeovers }: NameChanges) => ({
  gained: refs(gained),
  lost: refs(lost),
  takeovers: takeovers.map(({ name, from, to }) => `${name}: ${from.ref.namespace} -> ${to.ref.namespace}`),
})
const NOTHING = { gained: [], lost: [], takeovers: [] }

describe('NameIndex', () => {
  let index: NameIndex
  beforeEach(() => {
    index = new NameIndex()
  })

  test('the older object keeps a name, whether served or alias, and only that name is lost', () => {
    index.put(candidate('young', 2, ['b', 'a', 'c']))
    expect(seen(index.put(candidate('old', 1, ['a', 'b'])))).toEqual({ ...NOTHING, lost: ['shop/young'] })
    expect(index.lostNames('uid-young')).toEqual([
      { name: 'a', winner: 'shop/old' },
      { name: 'b', winner: 'shop/old' },
    ])
    expect(index.lostNames('uid-old')).toEqual([])
  })

  test('between two models of the same second the uid decides, in any order of events', () => {
    for (const order of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      index = new NameIndex()
      for (const name of order) index.put(candidate(name, 1, ['x']))
      expect(index.lostNames('uid-a')).toEqual([])
      expect(index.lostNames('uid-b')).toEqual([{ name: 'x', winner: 'shop/a' }])
    }
  })

  test.each<[string, boolean, boolean, number]>([
    ['both are private', false, false, 0],
    ['only the older one is published', true, false, 0],
    ['only the younger one is published', false, true, 0],
    ['both are published', true, true, 1],
  ])(
    'in different namespaces, if %s, the younger model loses the name only to a published rival (case %#)',
    (_what, older, younger, lost) => {
      index.put(candidate('old', 1, ['x'], { namespace: 'there', isPublished: older }))
      index.put(candidate('young', 2, ['x'], { namespace: 'here', isPublished: younger }))
      expect(index.lostNames('uid-young')).toHaveLength(lost)
      expect(index.lostNames('uid-old')).toEqual([])
    },
  )

  test('a freed name goes to the next oldest model, and the others get the new owner', () => {
    for (const [name, age] of [
      ['first', 1],
      ['second', 2],
      ['third', 3],
    ] as const)
      index.put(candidate(name, age, ['x']))
    expect(seen(index.delete('uid-first'))).toEqual({ gained: ['shop/second'], lost: ['shop/third'], takeovers: [] })
    expect(index.lostNames('uid-third')).toEqual([{ name: 'x', winner: 'shop/second' }])
  })

  test('an alias that its owner gives up goes to the next model; the names that the owner keeps change nothing', () => {
    index.put(candidate('old', 1, ['a', 'b']))
    index.put(candidate('young', 2, ['a', 'b']))
    expect(seen(index.put(candidate('old', 1, ['b'])))).toEqual({ ...NOTHING, gained: ['shop/young'] })
    expect(index.lostNames('uid-young')).toEqual([{ name: 'b', winner: 'shop/old' }])
  })

  test('a change of a model without the name affects no other model, and neither does a repeated event', () => {
    for (const [name, age] of [
      ['first', 1],
      ['second', 2],
      ['third', 3],
    ] as const)
      index.put(candidate(name, age, ['x']))
    expect(seen(index.put(candidate('third', 3, ['x', 'y'])))).toEqual(NOTHING)
    expect(seen(index.put(candidate('first', 1, ['x'])))).toEqual(NOTHING)
    expect(seen(index.delete('uid-second'))).toEqual(NOTHING)
    expect(seen(index.delete('uid-unknown'))).toEqual(NOTHING)
  })

  test('a published name that moves to another namespace is a takeover, whether its owner was deleted, renamed or closed', () => {
    const published = { isPublished: true }
    const owner = candidate('owner', 1, ['x'], { ...published, namespace: 'platform' })
    const endings: ReadonlyArray<() => NameChanges> = [
      () => index.delete(owner.uid),
      () => index.put({ ...owner, names: ['y'] }),
      () => index.put({ ...owner, isPublished: false }),
    ]
    for (const end of endings) {
      index = new NameIndex()
      index.put(owner)
      index.put(candidate('other', 2, ['x'], { ...published, namespace: 'evil' }))
      expect(seen(end()).takeovers).toEqual(['x: platform -> evil'])
    }
  })

  test('an older model that is published later takes the name over; a change of owner within one namespace is not a takeover', () => {
    index.put(candidate('late', 1, ['x'], { namespace: 'evil' }))
    index.put(candidate('owner', 2, ['x'], { namespace: 'platform', isPublished: true }))
    expect(seen(index.put(candidate('late', 1, ['x'], { namespace: 'evil', isPublished: true }))).takeovers).toEqual([
      'x: platform -> evil',
    ])
    index.put(candidate('a', 1, ['p'], { isPublished: true }))
    index.put(candidate('b', 2, ['p'], { isPublished: true }))
    expect(seen(index.delete('uid-a')).takeovers).toEqual([])
  })
})
