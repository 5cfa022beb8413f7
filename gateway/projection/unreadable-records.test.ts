import { describe, expect, test } from 'vitest'
import { perKind } from '#contract/records/record-kinds.ts'
import { UnreadableRecords } from './revision-follower.ts'

function records(...known: string[]): UnreadableRecords {
  const table = { has: (id: string) => known.includes(id) }
  return new UnreadableRecords(perKind(() => table))
}

describe('unreadable records', () => {
  test('are reported up to a bound: a full list says that there may be more', () => {
    const unreadable = records()
    for (let i = 0; i < 1_000; i++) unreadable.add('key', `k${i}`)
    expect(unreadable.reported).toHaveLength(64)
  })
})
