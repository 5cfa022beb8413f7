import { describe, expect, test } from 'vitest'
import { UnreadableRecords } from './unreadable-records.ts'

function records(...known: string[]): UnreadableRecords {
  const table = { has: (id: string) => known.includes(id) }
  return new UnreadableRecords({ key: table, model: table })
}

describe('unreadable records', () => {
  test('of which an older text serves are reported, and nothing is lacking', () => {
    const unreadable = records('a')
    unreadable.add('key', 'a')
    expect([unreadable.reported, unreadable.lacksKeys, unreadable.lacksAny]).toEqual([['a'], false, false])
  })

  test('of which there is nothing are lacking until they are read or deleted', () => {
    const unreadable = records()
    unreadable.add('model', 'm')
    expect([unreadable.lacksKeys, unreadable.lacksAny]).toEqual([false, true])
    unreadable.add('key', 'a')
    expect(unreadable.lacksKeys).toBe(true)
    unreadable.remove('key', 'a')
    unreadable.remove('model', 'm')
    expect([unreadable.reported, unreadable.lacksKeys, unreadable.lacksAny]).toEqual([[], false, false])
  })

  test('are those of the last full load', () => {
    const unreadable = records()
    unreadable.add('key', 'old')
    unreadable.replace(new Map([['m', 'model']]))
    expect([unreadable.reported, unreadable.lacksKeys, unreadable.lacksAny]).toEqual([['m'], false, true])
  })

  test('are reported up to a bound: a full list says that there may be more', () => {
    const unreadable = records()
    for (let i = 0; i < 1_000; i++) unreadable.add('key', `k${i}`)
    expect(unreadable.reported).toHaveLength(64)
  })
})
