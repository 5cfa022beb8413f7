import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { KeyringFolder } from '../../test/support/keyring-folder.ts'
import { issuedKey, keyringEntry, modelText } from '../../test/support/records.ts'
import { type KeyringEntry, writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { KeyringFiles } from './keyring-files.ts'

const folders: KeyringFolder[] = []
afterEach(() => folders.splice(0).forEach((folder) => folder.remove()))

function mounted(): { folder: KeyringFolder; files: KeyringFiles } {
  const folder = new KeyringFolder()
  folders.push(folder)
  return { folder, files: new KeyringFiles(folder.path) }
}

const entry = (uid: string, change: Partial<KeyringEntry> = {}): KeyringEntry => keyringEntry(issuedKey(uid).record, change)
const shardOf = (...texts: string[]) => gzipSync(['{"v":1,"shards":2,"shard":0}', ...texts].join('\n'))
const shard = (...entries: KeyringEntry[]) => shardOf(...entries.map((one) => writeKeyringEntry(one)))
/** As a later version writes it. */
const foreign = (uid: string) => JSON.stringify({ v: 2, uid, any: 'shape' })
const uidsIn = (content: { entries: readonly KeyringEntry[] | undefined }) => content.entries?.map(({ uid }) => uid)

describe('the mounted folder', () => {
  test('gives the keys and models of all shards, and the credentials', async () => {
    const { folder, files } = mounted()
    const sum = createHash('sha256').update('secret').digest('hex')
    folder.publish({
      'keyring/2-0': shard(entry('a')),
      'keyring/2-1': shard(entry('b'), entry('c')),
      'models/2-0': shardOf(modelText('m')),
      'models/2-1': shardOf(modelText('n')),
      [`upstream.${sum}`]: 'secret',
      [`upstream.${'0'.repeat(64)}`]: 'secret',
      'something-else': 'x',
    })
    const content = await files.read()
    expect(uidsIn(content)).toEqual(['a', 'b', 'c'])
    expect(content.models).toEqual([modelText('m'), modelText('n')])
    expect([...content.credentials]).toEqual([[sum, 'secret']])
    expect(content.problems).toEqual([expect.stringContaining('upstream.000')]) // its bytes are not those of its name
  })

  test('gives nothing, and no problem, while it does not exist or is empty: every source of the volume is optional', async () => {
    const nowhere = new KeyringFiles('/nonexistent/keyring')
    expect(await nowhere.signature()).toBe('')
    expect(await nowhere.read()).toEqual({
      entries: undefined,
      models: undefined,
      accounts: [],
      credentials: new Map(),
      unreadable: 0,
      isPartial: false,
      problems: [],
    })
    const { files } = mounted()
    expect(await files.signature()).toBe('')
  })

  test('has another signature after each swap, and the same one as long as nothing changes', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'models/1-0': shardOf() })
    const first = await files.signature()
    expect(await files.signature()).toBe(first)
    folder.publish({ 'models/1-0': shardOf() })
    expect(await files.signature()).not.toBe(first)
  })

  test('keeps the former content of a damaged file, names the file once, and continues with the rest', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/2-0': shard(entry('a')), 'keyring/2-1': shard(entry('b')) })
    await files.read()
    folder.publish({ 'keyring/2-0': Buffer.from('damaged'), 'keyring/2-1': shard(entry('c')) })
    const content = await files.read()
    expect(uidsIn(content)).toEqual(['a', 'c'])
    expect(content.problems).toEqual([expect.stringMatching(/keyring\/2-0 is damaged; its last good content stays in use/)])
  })

  test('leaves a file out that was damaged from the beginning, also in one entry: half a shard would lose revocations', async () => {
    const { folder, files } = mounted()
    folder.publish({
      'keyring/2-0': shardOf(writeKeyringEntry(entry('a')), '{"v":1}'),
      'keyring/2-1': shard(entry('b')),
      'models/1-0': Buffer.from('x'),
    })
    const content = await files.read()
    expect(uidsIn(content)).toEqual(['b'])
    expect(content.models).toBeUndefined()
    expect(content.problems).toHaveLength(2)
  })

  test('says that it is partial while a file cannot be read, and keeps its last good content', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/2-0': shard(entry('a')), 'keyring/2-1': shard(entry('b')) })
    expect((await files.read()).isPartial).toBe(false)
    folder.publish({ 'keyring/2-0/x': 'a folder in the place of the file', 'keyring/2-1': shard(entry('b')) })
    const content = await files.read()
    expect([uidsIn(content), content.isPartial]).toEqual([['a', 'b'], true])
    expect(content.problems).toEqual([expect.stringMatching(/keyring\/2-0 cannot be read \(EISDIR\)/)])
    folder.publish({ 'keyring/2-0': shard(entry('a')) })
    expect((await files.read()).isPartial).toBe(false)
  })

  test('keeps the content of a deleted file: the deletion of a shard neither revokes nor revives a key', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/2-0': shard(entry('a')), 'keyring/2-1': shard(entry('b')) })
    await files.read()
    folder.publish({ 'keyring/2-1': shard(entry('b')) })
    expect(uidsIn(await files.read())).toEqual(['b', 'a'])
  })
})

describe('a file of another version of the operator', () => {
  test('that is unreadable as a whole leaves the last good content in use, and asks for an update of the gateway', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/1-0': shard(entry('a')) })
    await files.read()
    folder.publish({ 'keyring/1-0': gzipSync('{"v":2}\nwhat ever') })
    const content = await files.read()
    expect([uidsIn(content), content.unreadable]).toEqual([['a'], 1])
    expect(content.problems).toEqual([
      expect.stringMatching(/keyring\/1-0 was written by another version .*last good .*update the gateway/),
    ])
  })

  test('with an entry that needs what this version lacks gives the entry without its values, and the text of such a record', async () => {
    const { folder, files } = mounted()
    const unmet = (text: string): string => JSON.stringify({ ...(JSON.parse(text) as object), needs: ['later'] })
    folder.publish({ 'keyring/1-0': shard(entry('a'), entry('b')), 'models/1-0': shardOf(modelText('m')) })
    await files.read()
    const grown = unmet(modelText('m'))
    folder.publish({
      'keyring/1-0': shardOf(unmet(writeKeyringEntry(entry('a', { generation: 7 }))), writeKeyringEntry(entry('b'))),
      'models/1-0': shardOf(grown),
    })
    const { entries, models, unreadable } = await files.read()
    const values = entries?.map(({ uid, generation, verifiers }) => [uid, generation, verifiers.length])
    expect(values).toEqual([
      ['b', entry('b').generation, 1],
      ['a', 7, 0],
    ])
    expect([models, unreadable]).toEqual([[grown], 1])
  })

  test('with single entries of that version keeps their former state, and applies the others', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/1-0': shard(entry('a'), entry('b')) })
    await files.read()
    for (const state of ['Suspended', 'Revoked'] as const) {
      folder.publish({ 'keyring/1-0': shardOf(foreign('a'), writeKeyringEntry(entry('b', { state })), foreign('new')) })
      const content = await files.read()
      expect(content.entries?.map(({ uid, state }) => `${uid} ${state}`)).toEqual([`b ${state}`, 'a Active'])
      expect(content.unreadable).toBe(2)
      expect(content.problems).toEqual([expect.stringMatching(/^2 entries of keyring file keyring\/1-0 .*update the gateway$/)])
    }
    folder.publish({ 'keyring/1-0': shard(entry('a', { state: 'Suspended' })) })
    const content = await files.read()
    expect(content.entries?.map(({ uid, state }) => `${uid} ${state}`)).toEqual(['a Suspended'])
    expect([content.unreadable, content.problems]).toEqual([0, []])
  })
})

describe('a reader that needs few entries', () => {
  /** What is read, and which entries the reader was asked about. */
  async function needed(files: KeyringFiles): Promise<{ entries: string[]; asked: string[] }> {
    const asked: string[] = []
    const { entries = [] } = await files.read(({ uid, state }) => asked.push(uid) > 0 && state !== 'Active')
    return { entries: entries.map(({ uid, state }) => `${uid} ${state}`), asked }
  }
  const ended = shard(entry('a', { state: 'Revoked' }), entry('b'))

  test('gets them from all files, and only the changed file is unpacked again', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/2-0': ended, 'keyring/2-1': shard(entry('c')) })
    expect(await needed(files)).toEqual({ entries: ['a Revoked'], asked: ['a', 'b', 'c'] })
    const suspended = shard(entry('c', { state: 'Suspended' }))
    folder.publish({ 'keyring/2-0': ended, 'keyring/2-1': suspended })
    expect(await needed(files)).toEqual({ entries: ['a Revoked', 'c Suspended'], asked: ['c'] })
    folder.publish({ 'keyring/2-0': shard(entry('b')), 'keyring/2-1': suspended })
    expect(await needed(files)).toEqual({ entries: ['c Suspended'], asked: ['b'] }) // the tombstone of a is over
  })

  test('is asked about every entry again after a reading of all, also of a file that was away meanwhile', async () => {
    const { folder, files } = mounted()
    const other = shard(entry('c'))
    folder.publish({ 'keyring/2-0': ended, 'keyring/2-1': other })
    await needed(files)
    folder.publish({ 'keyring/2-1': other })
    expect(uidsIn(await files.read())).toEqual(['c', 'a', 'b'])
    folder.publish({ 'keyring/2-0': ended, 'keyring/2-1': other })
    expect((await needed(files)).asked).toEqual(['a', 'b', 'c'])
  })

  test('learns that a file of another version, or with entries of one, is readable again', async () => {
    const { folder, files } = mounted()
    const contents = [ended, gzipSync('{"v":2}\nwhat ever'), ended, shardOf(foreign('a'), writeKeyringEntry(entry('b'))), ended]
    const unreadable: number[] = []
    for (const bytes of contents) {
      folder.publish({ 'keyring/1-0': bytes })
      const content = await files.read(({ state }) => state !== 'Active')
      unreadable.push(content.unreadable)
      expect(content.entries?.map(({ uid, state }) => `${uid} ${state}`)).toContain('a Revoked')
      expect(content.problems).toHaveLength(content.unreadable)
    }
    expect(unreadable).toEqual([0, 1, 0, 1, 0])
  })
})
