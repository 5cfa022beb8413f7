import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock, type Clock } from '../gateway/process/clock.ts'
import type { Log } from '../gateway/process/log.ts'
import { apiKeys } from '../operator/api/resources.ts'
import { namespaces } from '../operator/kube/resources.ts'
import { ManifestFolder, SETTLE_MS } from './manifest-folder.ts'
import { ObjectStore } from './object-store.ts'

const key = (name: string, model = 'a'): string =>
  `apiVersion: headgate.dev/v1alpha1\nkind: ApiKey\nmetadata: { name: ${name} }\nspec: { models: ['${model}'] }\n`

describe('ManifestFolder', () => {
  let path = ''
  let store: ObjectStore
  let nowMs = 0
  const clock: Clock = { now: () => nowMs, monotonic: () => nowMs, after: () => () => undefined } // looks only when told to
  let lines: string[]
  let folder: ManifestFolder

  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), 'headgate-manifests-'))
    store = new ObjectStore()
    lines = []
    folder = new ManifestFolder({ path, store, clock, log: recordingLog(lines) })
  })
  afterEach(async () => {
    await folder.stop()
    rmSync(path, { recursive: true, force: true })
  })

  const write = (file: string, text: string): void => writeFileSync(join(path, file), text)
  const models = async (): Promise<Record<string, unknown>> =>
    Object.fromEntries((await store.list(apiKeys, '')).map(({ metadata, spec }) => [metadata.name, spec.models]))
  /** Lets a finished edit settle: it is seen, and acted upon at the first look after SETTLE_MS. */
  const settle = async (): Promise<void> => {
    await folder.look()
    passTime(SETTLE_MS)
    await folder.look()
  }
  const passTime = (ms: number): void => {
    nowMs += ms
  }

  it('brings the store to what the folder says at the start, subfolders included, with the namespaces in use', async () => {
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
    expect(await models()).toEqual({ three: ['a'] })
  })

  it('leaves a file alone that is still being written, and one that an editor has moved away for a moment', async () => {
    write('a.yaml', `${key('one')}---\n${key('two')}`)
    await folder.start()
    write('a.yaml', key('one'))
    await folder.look()
    passTime(SETTLE_MS - 1)
    await folder.look()
    rmSync(join(path, 'a.yaml'))
    passTime(SETTLE_MS - 1)
    await folder.look()
    write('a.yaml', `${key('one', 'b')}---\n${key('two')}`)
    await settle()
    expect(await models()).toEqual({ one: ['b'], two: ['a'] })
    expect(lines.filter((line) => line.includes('deleting'))).toEqual([])
  })

  it('keeps the last good version of an invalid manifest and says so in one line, once', async () => {
    write('a.yaml', key('one'))
    await folder.start()
    write('a.yaml', key('one').replace('models', 'modles'))
    await settle()
    await settle()
    expect(await models()).toEqual({ one: ['a'] })
    expect(lines.filter((line) => line.startsWith('a.yaml: ApiKey default/one: spec.modles: '))).toHaveLength(1)
  })

  it('deletes at the start what an earlier run applied and whose manifest has gone meanwhile', async () => {
    write('a.yaml', key('one'))
    write('b.yaml', key('two'))
    await folder.start()
    await folder.stop()
    rmSync(join(path, 'b.yaml'))
    folder = new ManifestFolder({ path, store, clock, log: recordingLog(lines) })
    await folder.start()
    expect(await models()).toEqual({ one: ['a'] })
  })

  it('keeps finalizers and status of what it updates, and makes a deleted object anew once the old one is gone', async () => {
    write('a.yaml', key('one'))
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
    await folder.look()
    expect(await models()).toEqual({ one: ['c'] })
    expect((await store.get(apiKeys, ref))?.metadata.uid).not.toBe(first.metadata.uid)
  })

  it('deletes nothing when the folder itself is away, and refuses to start without it', async () => {
    write('a.yaml', key('one'))
    await folder.start()
    rmSync(path, { recursive: true })
    await settle()
    expect(await models()).toEqual({ one: ['a'] })
    expect(lines.at(-1)).toContain('everything stays as it is until the folder can be read')
    await expect(new ManifestFolder({ path, store, clock, log: recordingLog(lines) }).start()).rejects.toThrow(
      /^MANIFESTS: .*; create the folder/,
    )
  })

  it('names an object that cannot be written, goes on with all others, and tries again', async () => {
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
    await folder.look()
    expect(await models()).toEqual({ fine: ['a'], full: ['a'] })
  })

  it('acts on an edit by itself, without being told', async () => {
    folder = new ManifestFolder({ path, store, clock: systemClock, log: recordingLog(lines) })
    await folder.start()
    write('a.yaml', key('one'))
    await expect.poll(models, { timeout: 10_000, interval: 20 }).toEqual({ one: ['a'] })
  })
})

function recordingLog(lines: string[]): Log {
  const write = (first: unknown, second?: unknown): void => void lines.push(String(second ?? first))
  return { debug: write, info: write, warn: write, error: write }
}
