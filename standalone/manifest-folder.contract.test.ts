import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { apiKeys } from '#api/resources.ts'
import { namespaces } from '#kube/resources.ts'
import { ManifestFolder, REMOVAL_GRACE_MS, SETTLE_MS, UNFINISHED_MS } from './manifest-folder.ts'
import { ObjectStore } from './object-store.ts'
import { temporaryFolder } from '../test/support/temporary-folder.ts'

const key = (name: string, model = 'a'): string =>
  `apiVersion: headgate.dev/v1alpha1\nkind: ApiKey\nmetadata: { name: ${name} }\nspec: { models: ['${model}'] }\n`

describe('ManifestFolder', () => {
  let path = ''
  let store: ObjectStore
  let nowMs = 0
  const clock: Clock = { now: () => nowMs, monotonic: () => nowMs, after: () => () => undefined } // polls only when called
  let lines: string[]
  let folder: ManifestFolder

  beforeEach(() => {
    path = temporaryFolder()
    store = new ObjectStore()
    lines = []
    folder = new ManifestFolder({ path, store, clock, log: recordingLog(lines) })
  })
  afterEach(async () => {
    await folder.stop()
  })

  const write = (file: string, text: string): void => writeFileSync(join(path, file), text)
  const models = async (): Promise<Record<string, unknown>> =>
    Object.fromEntries((await store.list(apiKeys, '')).map(({ metadata, spec }) => [metadata.name, spec.models]))
  /** Lets a finished edit settle: a poll notices the edit, and it takes effect at the first poll after SETTLE_MS. */
  const settle = async (): Promise<void> => {
    await folder.poll()
    passTime(SETTLE_MS)
    await folder.poll()
  }
  const passTime = (ms: number): void => {
    nowMs += ms
  }

  it('makes the store equal to the folder at the start, including subfolders and the namespaces in use', async () => {
    mkdirSync(join(path, 'sub'))
    write('a.yaml', key('one'))
    write('sub/b.yml', key('two'))
    write('notes.txt', 'not: [yaml')
    write('.hidden.yaml', key('hidden'))
    await folder.start()
    expect(await models()).toEqual({ one: ['a'], two: ['a'] })
    expect((await store.list(namespaces, '')).map((object) => object.metadata.labels)).toEqual([
      { 'kubernetes.io/metadata.name': 'default' },
    ])
  })

  it('follows edits, new files, renames and removals', async () => {
    write('a.yaml', key('one'))
    await folder.start()
    write('a.yaml', key('one', 'b'))
    write('b.yaml', key('two'))
    await settle()
    expect(await models()).toEqual({ one: ['b'], two: ['a'] })
    write('.b.new', key('three'))
    renameSync(join(path, '.b.new'), join(path, 'b.yaml'))
    rmSync(join(path, 'a.yaml'))
    await settle()
    expect(await models()).toEqual({ two: ['a'], three: ['a'] })
    passTime(REMOVAL_GRACE_MS)
    await settle()
    expect(await models()).toEqual({ three: ['a'] })
  })

  it('leaves a half-written file alone, and one that an editor has moved away for a moment', async () => {
    write('a.yaml', `${key('one')}---\n${key('two')}`)
    await folder.start()
    write('a.yaml', key('one'))
    await folder.poll()
    passTime(SETTLE_MS - 1)
    await folder.poll()
    rmSync(join(path, 'a.yaml'))
    passTime(SETTLE_MS - 1)
    await folder.poll()
    write('a.yaml', `${key('one', 'b')}---\n${key('two')}`)
    await settle()
    expect(await models()).toEqual({ one: ['b'], two: ['a'] })
    expect(lines.filter((line) => line.includes('revoked'))).toEqual([])
  })

  it('keeps finalizers and status of updated objects, and creates an object again once the old one is deleted', async () => {
    write('a.yaml', key('one'))
    write('b.yaml', 'apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n')
    await folder.start()
    const ref = { namespace: 'default', name: 'one' }
    const first = await store.patch(apiKeys, ref, [{ op: 'add', path: '/metadata/finalizers', value: ['headgate.dev/revoke'] }])
    await store.applyStatus(apiKeys, { ...first, metadata: { name: 'one', namespace: 'default' }, status: { keyID: 'x' } })
    write('a.yaml', key('one', 'b'))
    await settle()
    expect(await store.get(apiKeys, ref)).toMatchObject({
      metadata: { finalizers: ['headgate.dev/revoke'], generation: 2 },
      status: { keyID: 'x' },
    })
    rmSync(join(path, 'a.yaml'))
    await settle()
    write('a.yaml', key('one', 'c'))
    await settle()
    expect((await store.get(apiKeys, ref))?.metadata.uid).toBe(first.metadata.uid)
    await store.patch(apiKeys, ref, [{ op: 'remove', path: '/metadata/finalizers' }])
    await folder.poll()
    expect(await models()).toEqual({ one: ['c'] })
    expect((await store.get(apiKeys, ref))?.metadata.uid).not.toBe(first.metadata.uid)
  })

  it('deletes nothing if the folder itself is missing, and refuses to start without it', async () => {
    write('a.yaml', key('one'))
    await folder.start()
    rmSync(path, { recursive: true })
    await settle()
    await settle()
    expect(await models()).toEqual({ one: ['a'] })
    expect(lines.filter((line) => line.includes('stay in force until the folder can be read'))).toHaveLength(1)
    mkdirSync(path)
    write('a.yaml', key('one', 'b'))
    await settle()
    expect(lines).toContain(`${path}: the folder can be read again`)
    expect(await models()).toEqual({ one: ['b'] })
    rmSync(path, { recursive: true })
    await expect(new ManifestFolder({ path, store, clock, log: recordingLog(lines) }).start()).rejects.toThrow(
      /^MANIFESTS: .*; create the folder/,
    )
  })

  it('names an object that cannot be written, continues with all others, and tries again', async () => {
    write('a.yaml', key('full'))
    write('b.yaml', key('fine'))
    const create = store.create.bind(store)
    const whole: typeof store.create = (resource, object) =>
      object.metadata.name === 'full' ? Promise.reject(new Error('no space left on device')) : create(resource, object)
    store.create = whole
    await folder.start()
    expect(await models()).toEqual({ fine: ['a'] })
    expect(lines).toContainEqual(expect.stringMatching(/ApiKey \S*full cannot be written: no space left on device; Headgate keeps trying/))
    store.create = create
    await folder.poll()
    expect(await models()).toEqual({ fine: ['a'], full: ['a'] })
  })

  it('a folder that is emptied file by file deletes nothing, like one that is emptied at once', async () => {
    write('a.yaml', key('one'))
    write('b.yaml', key('two'))
    await folder.start()
    rmSync(join(path, 'a.yaml'))
    await folder.poll()
    passTime(SETTLE_MS / 2)
    rmSync(join(path, 'b.yaml'))
    await folder.poll()
    for (let count = 0; count < 4; count += 1) {
      passTime(SETTLE_MS / 2)
      await folder.poll()
    }
    expect(await models()).toEqual({ one: ['a'], two: ['a'] })
    expect(lines.join('\n')).toMatch(/the folder holds no manifest/)
  })

  it('a missing document deletes its object only after a grace time, with a warning before', async () => {
    write('a.yaml', `${key('one')}---\n${key('two')}`)
    await folder.start()
    write('a.yaml', key('one', 'b'))
    await settle()
    expect(await models()).toEqual({ one: ['b'], two: ['a'] })
    expect(lines.at(-1)).toBe(
      'a.yaml: ApiKey default/two is not in this file any more; it is deleted in 5 s, and its key is revoked permanently; put its document back to keep it',
    )
    passTime(REMOVAL_GRACE_MS - SETTLE_MS - 1)
    await folder.poll()
    write('a.yaml', key('one', 'c'))
    await settle()
    passTime(REMOVAL_GRACE_MS - SETTLE_MS - 1)
    await folder.poll()
    expect(await models()).toEqual({ one: ['c'], two: ['a'] })
    passTime(1)
    await folder.poll()
    expect(await models()).toEqual({ one: ['c'] })
    expect(lines).toContain('ApiKey default/two: its document was removed from a.yaml; the key is revoked')
  })

  it('a file without a line break at its end takes effect at the start unless it is new, and JSON always does', async () => {
    write('a.yaml', key('one').trimEnd())
    write('b.json', JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }))
    nowMs = Date.now()
    await folder.start()
    expect(await models()).toEqual({})
    expect((await store.list(namespaces, '')).map(({ metadata }) => metadata.name)).toEqual(['shop'])
    await folder.stop()
    passTime(UNFINISHED_MS + 1_000)
    folder = new ManifestFolder({ path, store, clock, log: recordingLog(lines) })
    await folder.start()
    expect(await models()).toEqual({ one: ['a'] })
  })

  it('names once each skipped file whose name resembles that of a manifest', async () => {
    const elsewhere = temporaryFolder()
    write('a.YAML', key('one'))
    write('b.yaml.txt', key('two'))
    mkdirSync(join(path, 'c.yaml'))
    symlinkSync(elsewhere, join(path, 'd'))
    symlinkSync('nowhere.yaml', join(path, 'g.yaml'))
    write('e.md', 'not a manifest')
    write('f.yaml', key('six'))
    await folder.start()
    await settle()
    await settle()
    expect(lines.filter((line) => !line.includes(': applied'))).toEqual([
      'a.YAML: is not read because of its name; rename it to a.yaml',
      'b.yaml.txt: is not read because of its name; rename it to b.yaml',
      'c.yaml: is a folder, and only the manifests in it are read; rename it if it should be a file',
      'd: is a link to a folder, which is not followed; move the folder here, or set MANIFESTS to it',
      'g.yaml: does not exist, or is a link to a file that does not exist; create it, or remove the link (objects from this file stay in force)',
    ])
  })

  it('refuses bytes that are not UTF-8 text with their position, and keeps the objects of that file', async () => {
    write('a.yaml', key('one'))
    write('b.yaml', key('two'))
    await folder.start()
    writeFileSync(join(path, 'a.yaml'), Buffer.concat([Buffer.from(`# ü\n# `), Buffer.from([0xfc, 0x0a]), Buffer.from(key('one', 'b'))]))
    write('b.yaml', key('two', 'b').replace('two', 't\0wo'))
    write('c.yaml', '')
    writeFileSync(join(path, 'c.yaml'), Buffer.from(`\ufeff${key('three')}`, 'utf16le'))
    await settle()
    expect(await models()).toEqual({ one: ['a'], two: ['a'] })
    const kept = '(objects from this file stay in force)'
    expect(lines).toContain(`a.yaml:2:3: is not UTF-8 text; save the file as UTF-8 ${kept}`)
    expect(lines).toContain(`b.yaml:3:20: has a NUL character; remove the character, and check that the file is whole ${kept}`)
    expect(lines).toContain(`c.yaml:1:1: is not UTF-8 text; save the file as UTF-8 ${kept}`)
  })

  it('applies thousands of manifests of one file in turns, and ends at once in the middle', async () => {
    write('a.yaml', Array.from({ length: 4_000 }, (_, index) => key(`k${index}`)).join('---\n'))
    let inTurn = 0
    let mostInTurn = 0
    store.informer(apiKeys).subscribe(() => {
      if (inTurn === 0) setImmediate(() => (inTurn = 0))
      inTurn += 1
      mostInTurn = Math.max(mostInTurn, inTurn)
    })
    await folder.start()
    expect(Object.keys(await models())).toHaveLength(4_000)
    expect(mostInTurn, 'objects that one turn of the event loop applies').toBeLessThan(4_000)
    write('a.yaml', Array.from({ length: 20_000 }, (_, index) => key(`n${index}`)).join('---\n'))
    await folder.poll()
    passTime(SETTLE_MS)
    const polled = folder.poll()
    await folder.stop()
    await polled
    expect(Object.keys(await models())).toHaveLength(4_000)
    expect(lines.filter((line) => line.includes('cannot'))).toEqual([])
  })
})

function recordingLog(lines: string[]): Log {
  const write = (first: unknown, second?: unknown): void => void lines.push(String(second ?? first))
  return { debug: write, info: write, warn: write, error: write }
}
