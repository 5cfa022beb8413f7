import { describe, expect, test } from 'vitest'
import { type AccountRecord, decodeAccountRecord, encodeAccountRecord } from '#contract/records/account-record.ts'
import { RecordMap } from './record-map.ts'

function text(uid: string, change: Partial<AccountRecord> = {}): string {
  const own = { kind: 'account', version: 1, revision: 1, uid, name: uid, generation: 1, state: 'Active', plan: 'p1', ledger: uid } as const
  const record: AccountRecord = { ...own, ...change }
  return encodeAccountRecord(record)
}

function map() {
  const changed: string[] = []
  return { changed, records: new RecordMap(decodeAccountRecord, (uid) => changed.push(uid)) }
}

describe('records of one kind', () => {
  test('follow puts and deletes, and report each change', () => {
    const { records, changed } = map()
    expect(records.put('a', text('a'))).toBe(true)
    expect(records.get('a')?.state).toBe('Active')
    records.put('a', text('a', { revision: 2, state: 'Suspended' }))
    expect(records.get('a')?.state).toBe('Suspended')
    records.delete('a')
    records.delete('a')
    expect([records.has('a'), changed]).toEqual([false, ['a', 'a', 'a']])
  })

  test('lose a record whose newer text in the mounted folder needs what this version lacks', () => {
    const { records, changed } = map()
    const unmet = (generation: number): string => JSON.stringify({ ...(JSON.parse(text('a', { generation })) as object), needs: ['later'] })
    records.put('a', text('a', { generation: 2 }))
    records.override([unmet(2)])
    expect(records.has('a')).toBe(true)
    records.override([unmet(3)])
    expect([records.has('a'), changed]).toEqual([false, ['a', 'a']])
  })

  test('keep the newer of two texts, since batches of a load and the log overlap', () => {
    const { records, changed } = map()
    records.put('a', text('a', { revision: 5, state: 'Suspended' }))
    expect(records.put('a', text('a', { revision: 4 }))).toBe(true)
    expect([records.get('a')?.state, changed]).toEqual(['Suspended', ['a']])
  })

  test.each(['{}', 'no JSON', text('b'), text('a').replace('"v":1', '"v":99')])(
    'keep the last good one of an unreadable text: %s',
    (bad) => {
      const { records, changed } = map()
      records.put('a', text('a'))
      expect(records.put('a', bad)).toBe(false)
      const load = records.load()
      expect(load.put('a', bad)).toBe(false)
      load.commit()
      expect([records.get('a')?.state, changed]).toEqual(['Active', ['a']])
    },
  )

  test('do not stay when a newer text needs a feature that this version lacks', () => {
    const { records, changed } = map()
    const needy = text('a').replace('"v":1', '"v":1,"needs":["of a later version"]')
    records.put('a', text('a'))
    expect(records.put('a', needy)).toBe(false)
    expect([records.has('a'), changed]).toEqual([false, ['a', 'a']])
    records.put('a', text('a'))
    const load = records.load()
    load.put('a', text('a'))
    load.put('a', needy)
    load.commit()
    expect(records.has('a')).toBe(false)
  })

  test('are replaced as a whole by a full load, at its commit', () => {
    const { records, changed } = map()
    for (const uid of ['a', 'b']) records.put(uid, text(uid))
    const load = records.load()
    load.put('b', text('b', { revision: 2, state: 'Suspended' }))
    load.put('c', text('c'))
    load.put('d', text('d'))
    load.delete('d')
    expect([records.has('a'), records.get('b')?.state]).toEqual([true, 'Active'])
    load.commit()
    expect(['a', 'b', 'c', 'd'].map((uid) => records.get(uid)?.state)).toEqual([undefined, 'Suspended', 'Active', undefined])
    expect(changed).toEqual(['a', 'b', 'a', 'b', 'c'])
  })
})
