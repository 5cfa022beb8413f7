import { describe, expect, test } from 'vitest'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { FaultySource } from '../../test/support/faulty-source.ts'
import { issuedKey, modelText, recordText, writer } from '../../test/support/records.ts'
import type { LogEntry } from '#contract/records/revision-log.ts'
import { changedRecords, StaleProjection } from './projection-load.ts'

const { record } = issuedKey('a')
const put = { kind: 'key', op: 'put', id: 'a', text: recordText(record) } as const
const del = { kind: 'key', op: 'del', id: 'a' } as const

async function projection(): Promise<{ store: MemoryProjection; source: FaultySource; entries: () => Promise<readonly LogEntry[]> }> {
  const store = new MemoryProjection()
  await store.rebuild(writer(), 'e1', 10, [])
  const source = new FaultySource(store)
  return { store, source, entries: () => store.read(10, 0) }
}

describe('the records behind entries of the log', () => {
  test('are the newest ones, each fetched once however often it changed', async () => {
    const { store, source, entries } = await projection()
    await store.write(writer(), 'e1', [put, { ...put, text: recordText(record, { state: 'Suspended' }) }])
    await store.write(writer(), 'e1', [{ kind: 'model', op: 'put', id: 'm', text: modelText('m') }])
    expect(await changedRecords(source, 'e1', await entries())).toEqual([
      { kind: 'key', id: 'a', text: recordText(record, { revision: 12, state: 'Suspended' }) },
      { kind: 'model', id: 'm', text: modelText('m', { revision: 13 }) },
    ])
  })

  test('are absent when they were deleted, also after the entry that put them', async () => {
    const { store, source, entries } = await projection()
    await store.write(writer(), 'e1', [put, del])
    const all = await entries()
    expect(await changedRecords(source, 'e1', all)).toEqual([{ kind: 'key', id: 'a', text: undefined }])
    expect(await changedRecords(source, 'e1', all.slice(0, 1))).toEqual([{ kind: 'key', id: 'a', text: undefined }])
  })

  test.each<[string, (store: MemoryProjection, source: FaultySource) => unknown]>([
    ['was emptied', (_, source) => (source.meta_ = 'none')],
    ['was rebuilt', (store) => store.rebuild(writer(), 'e2', 20, [])],
  ])('are not taken for deleted if the store %s during the read', async (_, happen) => {
    const { store, source, entries } = await projection()
    await store.write(writer(), 'e1', [put])
    const all = await entries()
    await happen(store, source)
    source.records = () => Promise.resolve(new Map())
    await expect(changedRecords(source, 'e1', all)).rejects.toThrow(StaleProjection)
  })

  test('are not used when they are older than their entries: a replica that lagged answered', async () => {
    const { store, source, entries } = await projection()
    await store.write(writer(), 'e1', [put, { ...put, text: recordText(record, { state: 'Revoked' }) }])
    source.records = () => Promise.resolve(new Map([['a', recordText(record, { revision: 11 })]]))
    await expect(changedRecords(source, 'e1', await entries())).rejects.toThrow(StaleProjection)
  })
})
