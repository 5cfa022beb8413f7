/** The promises of every projection to the operator that writes and to the gateways that read. The suite runs on memory and on a real Redis. */
import { beforeEach, describe, expect, it } from 'vitest'
import { changedRecords } from '../../gateway/projection/projection-load.ts'
import type { ProjectionSource } from '../../gateway/projection/projection-source.ts'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import type { ProjectionChange, ProjectionStore } from '../../operator/projection/store.ts'
import { acknowledgement, issuedKey, modelText, recordText, writer } from '../support/records.ts'

export interface ProjectionSubject {
  readonly store: ProjectionStore
  readonly source: ProjectionSource
}

const EPOCH = 'epoch-1'
const FENCE = 7

export function describeProjection(name: string, makeSubject: () => Promise<ProjectionSubject>): void {
  describe(`${name} as a projection:`, () => {
    let store: ProjectionStore
    let source: ProjectionSource

    beforeEach(async () => {
      ;({ store, source } = await makeSubject())
      await store.prepare()
    })

    const put = (id: string, models = ['*'], kind: RecordKind = 'key'): ProjectionChange => ({
      kind,
      op: 'put',
      id,
      text: kind === 'key' ? recordText({ ...KEY, uid: id, models: [models] }) : modelText(id),
    })
    const del = (id: string, kind: RecordKind = 'key'): ProjectionChange => ({ kind, op: 'del', id })
    const write = (changes: readonly ProjectionChange[], floor = 0) => store.write(writer(FENCE), EPOCH, changes, floor)
    const build = (records: readonly ProjectionChange[] = [], revision = 10) => store.rebuild(writer(FENCE), EPOCH, revision, records)
    async function revisions(changes: readonly ProjectionChange[]): Promise<readonly number[]> {
      const outcome = await write(changes)
      if (outcome.outcome !== 'written') throw new Error(`not written: ${outcome.outcome}`)
      return outcome.revisions
    }
    async function records(kind: RecordKind = 'key', epoch = EPOCH): Promise<Record<string, string>> {
      const found: Array<readonly [string, string]> = []
      await source.scan(epoch, kind, (batch) => {
        found.push(...batch)
      })
      return Object.fromEntries(found)
    }
    const stamped = (change: ProjectionChange, revision: number): string => (change.text ?? '').replace('"rev":0', `"rev":${revision}`)

    it('an empty projection has no meta for writer and readers, and answers a writer to build it', async () => {
      expect(await store.meta()).toBeUndefined()
      expect(await source.meta()).toBeUndefined()
      expect((await write([put('a')])).outcome).toBe('foreign-epoch')
      expect(await records()).toEqual({})
      expect(await source.read(0, 0)).toEqual([])
    })

    it('a rebuild shows readers a whole data set at once, each record under the revision of the switch', async () => {
      const all = [put('a'), put('b'), put('m', [], 'model')]
      expect((await build(all)).outcome).toBe('written')
      const meta = { schema: 1, epoch: EPOCH, revision: 10, fence: FENCE }
      expect(await store.meta()).toMatchObject(meta)
      expect(await source.meta()).toMatchObject(meta)
      expect(await records()).toEqual({ a: stamped(put('a'), 10), b: stamped(put('b'), 10) })
      expect(await records('model')).toEqual({ m: stamped(put('m', [], 'model'), 10) })
      expect(await source.read(10, 0)).toEqual([])
    })

    it('each change has a revision of its own, and readers get the names of what changed, in order', async () => {
      await build([put('a')])
      expect(await revisions([put('a', ['x']), put('m', [], 'model'), del('a')])).toEqual([11, 12, 13])
      expect(await source.read(10, 0)).toEqual([
        { revision: 11, kind: 'key', op: 'put', id: 'a' },
        { revision: 12, kind: 'model', op: 'put', id: 'm' },
        { revision: 13, kind: 'key', op: 'del', id: 'a' },
      ])
      expect(await source.read(12, 0)).toHaveLength(1)
      expect(await records()).toEqual({})
      expect(await records('model')).toEqual({ m: stamped(put('m', [], 'model'), 12) })
      expect(await source.meta()).toMatchObject({ revision: 13 })
    })

    it('an unchanged record costs no revision and answers the revision that carries the record; nor does the deletion of an absent record', async () => {
      await build([put('a')])
      expect(await revisions([put('b')])).toEqual([11])
      expect(await revisions([put('a'), put('b'), del('ghost')])).toEqual([10, 11, 11])
      expect(await revisions([{ ...put('b'), text: stamped(put('b'), 4711) }])).toEqual([11]) // the revision in the text of the writer does not count
      expect(await source.read(11, 0)).toEqual([])
      expect(await source.meta()).toMatchObject({ revision: 11 })
    })

    it('lists the ids of its records to a writer, returns records by id to writer and readers, and nothing of another data set', async () => {
      await build([put('a'), put('b')])
      expect([...(await store.ids(EPOCH, 'key'))].sort()).toEqual(['a', 'b'])
      expect(await store.ids(EPOCH, 'model')).toEqual([])
      const texts = new Map([
        ['a', stamped(put('a'), 10)],
        ['b', stamped(put('b'), 10)],
      ])
      expect(await store.records(EPOCH, 'key', ['a', 'ghost', 'b'])).toEqual(texts)
      expect(await source.records(EPOCH, 'key', ['b', 'ghost', 'a'])).toEqual(texts)
      expect(await store.records(EPOCH, 'key', [])).toEqual(new Map())
      expect(await store.ids('elsewhere', 'key')).toEqual([])
      expect(await store.records('elsewhere', 'key', ['a'])).toEqual(new Map())
    })

    it('lists each id once, of more records than one call returns', async () => {
      const ids = Array.from({ length: 2_500 }, (_, at) => `uid-${at}`)
      await build(ids.map((id) => put(id)))
      expect([...(await store.ids(EPOCH, 'key'))].sort()).toEqual(ids.toSorted())
    })

    it('a writer of another data set changes nothing and is answered to rebuild', async () => {
      await build([put('a')])
      expect((await store.write(writer(FENCE), 'elsewhere', [put('b')], 0)).outcome).toBe('foreign-epoch')
      expect(Object.keys(await records())).toEqual(['a'])
    })

    it('a writer that has seen newer revisions than the store holds is answered to rebuild: the store went back to an older state', async () => {
      await build([put('a')])
      expect((await write([put('b')], 11)).outcome).toBe('foreign-epoch')
      expect(Object.keys(await records())).toEqual(['a'])
      expect((await write([put('b')], 10)).outcome).toBe('written')
    })

    it('a deposed leader neither writes nor rebuilds, even before the new leader has changed a record', async () => {
      await build([put('a')])
      await store.write(writer(FENCE + 1), EPOCH, [put('a')], 10)
      expect(await write([put('b')])).toEqual({ outcome: 'fenced', fence: FENCE + 1 })
      expect(await build([])).toEqual({ outcome: 'fenced', fence: FENCE + 1 })
      expect((await store.write(writer(FENCE), 'elsewhere', [put('b')], 99)).outcome).toBe('fenced')
      expect(Object.keys(await records())).toEqual(['a'])
      expect((await store.write(writer(FENCE + 1), EPOCH, [put('b')], 10)).outcome).toBe('written')
    })

    it('after a switch a reader of the old data set finds another epoch and no entry, and the writer of the old data set is refused', async () => {
      await build([put('a')])
      await revisions([put('b')])
      expect((await store.rebuild(writer(FENCE), 'epoch-2', 20, [put('c')])).outcome).toBe('written')
      expect(await source.meta()).toMatchObject({ epoch: 'epoch-2', revision: 20 })
      expect(await records('key', 'epoch-2')).toEqual({ c: stamped(put('c'), 20) })
      expect(await source.read(11, 0)).toEqual([])
      expect((await write([put('d')], 11)).outcome).toBe('foreign-epoch')
      expect((await store.write(writer(FENCE), 'epoch-2', [put('d')], 20)).outcome).toBe('written')
      expect((await source.read(20, 0)).map(({ revision }) => revision)).toEqual([21])
    })

    it('a rebuild delivers 1200 records, and the log delivers 600 changes in portions without a gap', async () => {
      const many = Array.from({ length: 1200 }, (_, index) => put(`key-${index}`))
      await build(many)
      expect(Object.keys(await records())).toHaveLength(1200)
      for (let at = 0; at < 600; at += 200) await revisions(many.slice(at, at + 200).map(({ id }) => del(id)))
      const seen: number[] = []
      for (let revision = 10; ; revision = seen.at(-1) ?? revision) {
        const entries = await source.read(revision, 0)
        if (entries.length === 0) break
        expect(entries.length).toBeLessThanOrEqual(500)
        seen.push(...entries.map((entry) => entry.revision))
      }
      expect(seen).toEqual(Array.from({ length: 600 }, (_, index) => 11 + index))
      expect(Object.keys(await records())).toHaveLength(600)
    })

    it('a change of a kind that only a newer build knows stops no reader: the revocation after the change arrives', async () => {
      await build([put('a')])
      const unknown: ProjectionChange = { kind: 'unknown' as RecordKind, op: 'put', id: 'u', text: '{"v":1,"rev":0,"uid":"u"}' }
      expect(await revisions([unknown, del('a')])).toEqual([11, 12])
      const entries = await source.read(10, 0)
      expect(entries.map(({ revision }) => revision)).toEqual([11, 12])
      expect(await changedRecords(source, EPOCH, entries)).toEqual([{ kind: 'key', id: 'a', text: undefined }])
      expect((await store.rebuild(writer(FENCE), 'epoch-2', 20, [unknown, put('b')])).outcome).toBe('written')
      expect(await records('key', 'epoch-2')).toEqual({ b: stamped(put('b'), 20) })
    })

    it('a text with special characters is returned unchanged, but for its revision', async () => {
      await build()
      const odd = { ...put('a'), text: '{"v":1,"rev":0,"name":"%d %1 \\" \\n \\u0000 ü 🚀 \'rev\':5 \\"rev\\":6 \u2028"}' }
      await revisions([odd])
      expect(await records()).toEqual({ a: odd.text.replace('"rev":0', '"rev":11') })
      expect(await revisions([odd])).toEqual([11])
    })

    it('a write ends the wait of a reader', async () => {
      await build()
      const waiting = source.read(10, 1_000)
      await revisions([put('a')])
      expect((await waiting).map(({ revision }) => revision)).toEqual([11])
    })

    it('belongs to the installation that wrote it first: another installation neither writes nor rebuilds, unless it takes over', async () => {
      const [ours, theirs] = [writer(FENCE, 'ours'), writer(FENCE + 9, 'theirs')]
      await build([put('a')])
      expect((await store.write(ours, EPOCH, [put('b')], 10)).outcome).toBe('written') // a projection without an installation is adopted
      expect([(await store.meta())?.installation, (await source.meta())?.installation]).toEqual(['ours', 'ours'])
      const refused = { outcome: 'foreign-installation', installation: 'ours' }
      expect(await store.write(theirs, EPOCH, [put('c')], 10)).toEqual(refused)
      expect(await store.write(theirs, 'elsewhere', [put('c')], 99)).toEqual(refused)
      expect(await store.rebuild(theirs, 'epoch-2', 20, [])).toEqual(refused)
      expect(await store.write({ ...theirs, takesOver: true }, EPOCH, [put('c')], 10)).toEqual(refused)
      expect(await write([put('c')])).toEqual(refused)
      expect(Object.keys(await records()).toSorted()).toEqual(['a', 'b'])
      expect(await store.meta()).toMatchObject({ epoch: EPOCH, revision: 11, fence: FENCE })
      expect((await store.rebuild({ ...theirs, takesOver: true }, 'epoch-2', 20, [put('c')])).outcome).toBe('written')
      expect(await store.meta()).toMatchObject({ epoch: 'epoch-2', installation: 'theirs' })
    })

    it('a process that claims a revision that does not exist has acknowledged nothing, and is marked', async () => {
      await build([put('a')])
      await source.heartbeat('good/1', acknowledgement({ epoch: EPOCH, revision: 10 }))
      await source.heartbeat('ahead/1', acknowledgement({ epoch: EPOCH, revision: 11 }))
      await source.heartbeat('elsewhere/1', acknowledgement({ epoch: 'epoch-0', revision: 99 }))
      const live = await store.liveProcesses()
      const seen = live.map(({ pod, acknowledgement: ack, isAhead = false }) => [pod, { revision: ack?.revision, isAhead }] as const)
      expect(Object.fromEntries(seen)).toEqual({
        ahead: { revision: undefined, isAhead: true },
        elsewhere: { revision: 99, isAhead: false },
        good: { revision: 10, isAhead: false },
      })
    })

    it('a heartbeat makes a process live with its last acknowledgement, and a process that leaves is removed', async () => {
      await build()
      const ack = acknowledgement({ epoch: EPOCH, revision: 10, unreadable: ['x'], backends: { 'm/one': { up: 0, total: 1 } } })
      expect(await store.liveProcesses()).toEqual([])
      await source.heartbeat('gateway-0/1', { ...ack, revision: 9 })
      await source.heartbeat('gateway-0/1', ack)
      await source.heartbeat('gateway-1/2', ack)
      await source.leave('gateway-1/2')
      expect(await store.liveProcesses()).toEqual([{ process: 'gateway-0/1', pod: 'gateway-0', acknowledgement: ack }])
    })
  })
}

const KEY = issuedKey('template').record
