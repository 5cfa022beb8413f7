import { describe, expect, test } from 'vitest'
import { issuedKey, keyringEntry, recordText } from '../../test/support/records.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { KeyTable } from './key-table.ts'

function tableOf(...records: KeyRecord[]): KeyTable {
  const table = new KeyTable()
  reload(table, ...records)
  return table
}

function oneKey(changes: Partial<KeyRecord> = {}) {
  const issued = issuedKey('a', changes)
  return { ...issued, table: tableOf(issued.record) }
}

/** A full load of these texts. */
function reload(table: KeyTable, ...records: KeyRecord[]): void {
  const load = table.load()
  for (const record of records) load.put(record.uid, recordText(record))
  load.commit()
}

/** Text of the key `a` that no version before the next one can use. */
const NEEDY = '{"v":1,"needs":["of a later version"],"rev":9,"uid":"a"}'

const stateOf = (table: KeyTable, credential: string) => table.find(credential)?.record.state

describe('the key table', () => {
  test('reports keys that a change has ended, so that what they have leased goes back', () => {
    const ended: string[] = []
    const table = new KeyTable((uid) => void ended.push(uid))
    for (const [uid, state] of Object.entries({ a: 'Active', b: 'Suspended', c: 'Revoked' } as const)) {
      table.put(uid, recordText({ ...issuedKey(uid).record, state }))
    }
    table.delete('a')
    expect(ended).toEqual(['b', 'c', 'a'])
  })

  test('reports keys whose limits have changed, so that nothing leased under the old ones is used', () => {
    const changed: string[] = []
    const table = new KeyTable((uid) => void changed.push(uid))
    const { record } = issuedKey('a')
    for (const requestsPerMinute of [1, 2, 2, 1]) table.put('a', recordText({ ...record, limits: { requestsPerMinute } }))
    expect(changed).toEqual(['a', 'a', 'a'])
  })

  test('forgets a deleted key and all of its hashes', () => {
    const { credential, table } = oneKey()
    table.delete('a')
    expect(table.find(credential)).toBeUndefined()
    expect(table.size).toBe(0)
  })

  test('forgets the hashes that a newer record of the key no longer has', () => {
    const [old, fresh] = [issuedKey('a', { revision: 1 }), issuedKey('a', { revision: 2 })]
    const table = tableOf(old.record)
    table.put('a', recordText(fresh.record))
    expect(stateOf(table, old.credential)).toBeUndefined()
    expect(stateOf(table, fresh.credential)).toBe('Active')
  })

  test('never goes back to an older record of a key', () => {
    const { credential, record } = issuedKey('a')
    const table = tableOf({ ...record, revision: 7, state: 'Revoked' })
    expect(table.put('a', recordText(record, { revision: 6 }))).toBe(true)
    expect(stateOf(table, credential)).toBe('Revoked')
  })

  test('keeps the last good record when a newer one cannot be read, and says so', () => {
    const { credential, record, table } = oneKey()
    expect(table.put('a', '{"v":2}')).toBe(false)
    expect(table.put('a', recordText({ ...record, uid: 'b' }))).toBe(false)
    expect(stateOf(table, credential)).toBe('Active')
  })

  test('does not go on with the last good record of a key whose newer one needs a feature that this version lacks', () => {
    const { credential, table } = oneKey()
    expect(table.put('a', NEEDY)).toBe(false)
    expect([stateOf(table, credential), table.has('a')]).toEqual([undefined, false])
  })

  test('learns that a key with limits is suspended or revoked', () => {
    const { credential, record, table } = oneKey()
    table.put('a', recordText({ ...record, revision: 9, state: 'Suspended', limits: { requestsPerMinute: 60 } }))
    expect(stateOf(table, credential)).toBe('Suspended')
  })

  test('keeps a hash that meanwhile belongs to another key', () => {
    const { credential, record, table } = oneKey()
    table.put('b', recordText(record, { uid: 'b' }))
    table.delete('a')
    expect(table.find(credential)?.record.uid).toBe('b')
  })
})

describe('a full load', () => {
  test('changes nothing until it is whole, then everything at once', () => {
    const [old, fresh] = [issuedKey('a'), issuedKey('b')]
    const table = tableOf(old.record)
    const load = table.load()
    load.put('b', recordText(fresh.record))
    expect(stateOf(table, fresh.credential)).toBeUndefined()
    expect(stateOf(table, old.credential)).toBe('Active')
    load.commit()
    expect(stateOf(table, fresh.credential)).toBe('Active')
    expect(stateOf(table, old.credential)).toBeUndefined()
  })

  test('reports keys that are absent, no longer admit requests, or have other limits, because no single change reported them', () => {
    const ended: string[] = []
    const table = new KeyTable((uid) => void ended.push(uid))
    const records = ['same', 'absent', 'suspended', 'limited'].map((uid) => issuedKey(uid).record)
    const loadAll = (change: (record: KeyRecord) => KeyRecord | undefined): void => {
      reload(table, ...records.flatMap((one) => change(one) ?? []))
    }
    loadAll((record) => record)
    loadAll((record) => {
      if (record.uid === 'absent') return undefined
      if (record.uid === 'suspended') return { ...record, state: 'Suspended' }
      return record.uid === 'limited' ? { ...record, limits: { requestsPerMinute: 1 } } : record
    })
    expect(ended).toEqual(['absent', 'suspended', 'limited'])
  })

  test('takes the newer of two records of a key, in whichever order they come', () => {
    const { credential, record } = issuedKey('a')
    const table = new KeyTable()
    const load = table.load()
    load.put('a', recordText(record, { revision: 9, state: 'Suspended' }))
    load.put('a', recordText(record, { revision: 8 }))
    load.commit()
    expect(stateOf(table, credential)).toBe('Suspended')
  })

  test('keeps the last good record of a key that it cannot read', () => {
    const { credential, table } = oneKey()
    const load = table.load()
    expect(load.put('a', 'damaged')).toBe(false)
    load.commit()
    expect(stateOf(table, credential)).toBe('Active')
  })

  test('does not keep it when that record needs a feature that this version lacks', () => {
    const { credential, record, table } = oneKey()
    const load = table.load()
    load.put('a', recordText(record))
    load.put('a', NEEDY)
    load.commit()
    expect([stateOf(table, credential), table.has('a')]).toEqual([undefined, false])
  })

  test('does not keep it when the log deletes that key during the load', () => {
    const { credential, table } = oneKey()
    const load = table.load()
    load.put('a', 'damaged')
    load.delete('a')
    load.commit()
    expect(stateOf(table, credential)).toBeUndefined()
  })
})

describe('the mounted keyring', () => {
  test('revokes a key whatever the projection says, now and after every load', () => {
    const { credential, record, table } = oneKey({ generation: 5 })
    table.override([keyringEntry({ ...record, generation: 1, state: 'Revoked' })])
    expect(stateOf(table, credential)).toBe('Revoked')
    table.put('a', recordText(record, { revision: 99 }))
    expect(stateOf(table, credential)).toBe('Revoked')
    reload(table, { ...record, revision: 100 })
    expect(stateOf(table, credential)).toBe('Revoked')
  })

  test('revokes a key that an old Redis brings back, though it was unknown when the line was read', () => {
    const { credential, record } = issuedKey('a')
    const table = new KeyTable()
    table.override([keyringEntry(record, { deletedMs: 1 })])
    reload(table, record)
    expect(stateOf(table, credential)).toBe('Revoked')
  })

  test('holds for a load that began before the line was read', () => {
    const { credential, record, table } = oneKey()
    const load = table.load()
    load.put('a', recordText(record))
    table.override([keyringEntry({ ...record, state: 'Revoked' })])
    load.commit()
    expect(stateOf(table, credential)).toBe('Revoked')
  })

  test('stops holding when the line is no longer in the files', () => {
    const { credential, record, table } = oneKey()
    table.override([keyringEntry({ ...record, state: 'Revoked' })])
    table.override([])
    expect(stateOf(table, credential)).toBe('Active')
  })

  test('ends one generation of the key material and leaves the other', () => {
    const { credential, record } = issuedKey('a')
    const [verifier] = record.verifiers
    const other = issuedKey('a')
    const rotated = other.record.verifiers[0]!
    const table = tableOf({ ...record, verifiers: [...record.verifiers, rotated] })
    const [line] = keyringEntry(record).verifiers
    table.override([keyringEntry(record, { verifiers: [{ ...line!, state: 'Revoked' }] })])
    expect(stateOf(table, credential)).toBeUndefined()
    expect(table.find(other.credential)?.record.verifiers).toEqual([rotated])
    expect(verifier).toBeDefined()
  })

  test('suspends a key while its generation is above that of the projection; on a tie the projection wins', () => {
    const { credential, record, table } = oneKey({ generation: 3 })
    table.override([keyringEntry({ ...record, generation: 3, state: 'Suspended' })])
    expect(stateOf(table, credential)).toBe('Active')
    table.override([keyringEntry({ ...record, generation: 4, state: 'Suspended' })])
    expect(stateOf(table, credential)).toBe('Suspended')
    table.put('a', recordText(record, { revision: 50, generation: 5 }))
    expect(stateOf(table, credential)).toBe('Active')
  })
})

describe('a cold start from the mounted keyring', () => {
  test('knows every key of the files, those just minted too, and no revoked one', () => {
    const [issued, minted, revoked] = [issuedKey('a'), issuedKey('b'), issuedKey('c')]
    const [line] = keyringEntry(minted.record).verifiers
    const table = new KeyTable()
    table.seed([
      keyringEntry(issued.record),
      keyringEntry(minted.record, { verifiers: [{ ...line!, state: 'Minted' }] }),
      keyringEntry(revoked.record, { deletedMs: 5 }),
    ])
    expect(stateOf(table, issued.credential)).toBe('Active')
    expect(stateOf(table, minted.credential)).toBe('Active')
    expect(stateOf(table, revoked.credential)).toBe('Revoked')
  })

  test('keeps a key that later files lack, and takes every change that they bring', () => {
    const [kept, changed] = [issuedKey('a'), issuedKey('b')]
    const table = new KeyTable()
    table.seed([keyringEntry(kept.record), keyringEntry(changed.record)])
    table.seed([keyringEntry({ ...changed.record, generation: 2, state: 'Suspended' })])
    expect(stateOf(table, kept.credential)).toBe('Active')
    expect(stateOf(table, changed.credential)).toBe('Suspended')
    table.seed([keyringEntry(changed.record)])
    expect(stateOf(table, changed.credential)).toBe('Suspended')
  })

  test('takes the revoked line where two sets of shards disagree', () => {
    const { credential, record } = issuedKey('a')
    const table = new KeyTable()
    table.seed([keyringEntry({ ...record, generation: 2, state: 'Revoked' }), keyringEntry({ ...record, generation: 9 })])
    expect(stateOf(table, credential)).not.toBe('Active')
  })

  test('ends with the first load: keys that the projection lacks go', () => {
    const [a, b] = [issuedKey('a'), issuedKey('b')]
    const table = new KeyTable()
    table.seed([keyringEntry(a.record), keyringEntry(b.record)])
    reload(table, b.record)
    expect(stateOf(table, a.credential)).toBeUndefined()
    expect(stateOf(table, b.credential)).toBe('Active')
  })
})
