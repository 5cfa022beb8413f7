import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { KeyringFolder } from '../../test/support/keyring-folder.ts'
import { issuedKey, keyringLine, modelText } from '../../test/support/records.ts'
import { encodeKeyringShard, encodeModelsFile, type KeyringLine } from '../shared/keyring-line.ts'
import { KeyringFiles } from './keyring-files.ts'

const folders: KeyringFolder[] = []
afterEach(() => folders.splice(0).forEach((folder) => folder.remove()))

function mounted(): { folder: KeyringFolder; files: KeyringFiles } {
  const folder = new KeyringFolder()
  folders.push(folder)
  return { folder, files: new KeyringFiles(folder.path) }
}

const line = (uid: string): KeyringLine => keyringLine(issuedKey(uid).record)
const shard = (...lines: KeyringLine[]) => encodeKeyringShard({ shards: 2, shard: 0, rev: 1, lines })

describe('the mounted folder', () => {
  test('gives the keys of all shards, the models and the tokens', async () => {
    const { folder, files } = mounted()
    folder.publish({
      'keyring/2-0': shard(line('a')),
      'keyring/2-1': shard(line('b'), line('c')),
      models: encodeModelsFile(1, [modelText('m')]),
      'upstream.m.one': 'secret\n',
      'something-else': 'x',
    })
    const content = await files.read()
    expect(content.lines?.map(({ uid }) => uid)).toEqual(['a', 'b', 'c'])
    expect(content.models).toEqual([modelText('m')])
    const sum = createHash('sha256').update('secret\n').digest('hex')
    expect([...content.tokens]).toEqual([['upstream.m.one', { token: 'secret', sum }]])
    expect(content.faults).toEqual([])
  })

  test('gives nothing, and no fault, while it does not exist or is empty: every source of the volume is optional', async () => {
    const nowhere = new KeyringFiles('/nonexistent/keyring')
    expect(await nowhere.signature()).toBe('')
    expect(await nowhere.read()).toEqual({ lines: undefined, models: undefined, tokens: new Map(), faults: [] })
    const { files } = mounted()
    expect(await files.signature()).toBe('')
  })

  test('has another signature after each swap, and the same one as long as nothing changes', async () => {
    const { folder, files } = mounted()
    folder.publish({ models: encodeModelsFile(1, []) })
    const first = await files.signature()
    expect(await files.signature()).toBe(first)
    folder.publish({ models: encodeModelsFile(1, []) })
    expect(await files.signature()).not.toBe(first)
  })

  test('keeps what a damaged file said before, names the file once, and goes on with the rest', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/2-0': shard(line('a')), 'keyring/2-1': shard(line('b')) })
    await files.read()
    folder.publish({ 'keyring/2-0': Buffer.from('damaged'), 'keyring/2-1': shard(line('c')) })
    const content = await files.read()
    expect(content.lines?.map(({ uid }) => uid)).toEqual(['a', 'c'])
    expect(content.faults).toEqual([expect.stringMatching(/keyring\/2-0 is damaged; its last good content stays in use/)])
  })

  test('leaves a file out that was damaged from the beginning', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/2-0': Buffer.from('damaged'), 'keyring/2-1': shard(line('b')), models: Buffer.from('x') })
    const content = await files.read()
    expect(content.lines?.map(({ uid }) => uid)).toEqual(['b'])
    expect(content.models).toBeUndefined()
    expect(content.faults).toHaveLength(2)
  })

  test('keeps what an absent file said: somebody deleting a shard revokes nobody and revives nobody', async () => {
    const { folder, files } = mounted()
    folder.publish({ 'keyring/2-0': shard(line('a')), 'keyring/2-1': shard(line('b')) })
    await files.read()
    folder.publish({ 'keyring/2-1': shard(line('b')) })
    expect((await files.read()).lines?.map(({ uid }) => uid)).toEqual(['b', 'a'])
  })
})
