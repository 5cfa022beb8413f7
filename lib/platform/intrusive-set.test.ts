import { describe, expect, test } from 'vitest'
import { NO_SLOT, IntrusiveSet, type Intrusive } from './intrusive-set.ts'

interface Named extends Intrusive {
  readonly name: string
}

function named(...names: string[]): Named[] {
  return names.map((name) => ({ name, slot: NO_SLOT }))
}

function contents(list: IntrusiveSet<Named>): string[] {
  const names: string[] = []
  list.forEach(({ name }) => names.push(name))
  return names.toSorted()
}

describe('IntrusiveSet', () => {
  test('holds each entry once, however often it is added', () => {
    const list = new IntrusiveSet<Named>()
    const [a, b] = named('a', 'b') as [Named, Named]
    for (const entry of [a, b, a]) list.add(entry)
    expect([list.size, contents(list)]).toEqual([2, ['a', 'b']])
  })

  test('an entry that is taken out takes no other one with it, and may come back', () => {
    const list = new IntrusiveSet<Named>()
    const [a, b, c] = named('a', 'b', 'c') as [Named, Named, Named]
    for (const entry of [a, b, c]) list.add(entry)
    for (const entry of [a, a]) list.delete(entry)
    expect(contents(list)).toEqual(['b', 'c'])
    list.delete(c)
    list.add(a)
    expect(contents(list)).toEqual(['a', 'b'])
    for (const entry of [a, b]) list.delete(entry)
    expect([list.size, contents(list)]).toEqual([0, []])
  })

  test('during forEach, removed entries are skipped and new ones wait for the next call', () => {
    const list = new IntrusiveSet<Named>()
    const [a, b, c, late] = named('a', 'b', 'c', 'late') as [Named, Named, Named, Named]
    for (const entry of [a, b, c]) list.add(entry)
    const seen: string[] = []
    list.forEach(({ name }) => {
      seen.push(name)
      list.delete(a)
      list.delete(c)
      list.add(late)
    })
    expect(seen).toEqual(['a', 'b'])
    expect(contents(list)).toEqual(['b', 'late'])
  })
})
