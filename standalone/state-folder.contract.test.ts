import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { apiKeys } from '#api/resources.ts'
import { secrets, type Secret } from '#kube/resources.ts'
import { ObjectStore } from './object-store.ts'
import { readStoredStatus, StateFolder } from './state-folder.ts'
import { apiKey } from '../test/support/objects.ts'
import { temporaryFolder } from '../test/support/temporary-folder.ts'

describe('StateFolder', () => {
  let home = ''
  let root = ''

  beforeEach(() => {
    home = temporaryFolder()
    root = join(home, '.headgate')
  })

  const open = (): { store: ObjectStore; state: StateFolder } => {
    const state = new StateFolder(root)
    const store = new ObjectStore({ persist: (change) => state.persist(change) })
    try {
      store.restore(state.load())
    } catch (error) {
      state.close()
      throw error
    }
    return { store, state }
  }
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'bot', namespace: 'shop' },
    type: 'Opaque',
    data: { SERVICE_API_KEY: Buffer.from('sk-value').toString('base64'), raw: Buffer.from([0, 255, 10]).toString('base64') },
  }
  const key = apiKey('bot', {}, { finalizers: ['headgate.dev/revoke'] })
  const created = async (): Promise<void> => {
    const { store, state } = open()
    await store.create(secrets, secret)
    await store.create(apiKeys, key)
    state.close()
  }
  const valueFile = (): string => join(root, 'secrets', 'shop', 'bot', 'SERVICE_API_KEY')

  describe('that another user has prepared', () => {
    const refusal = (path: string) =>
      expect.objectContaining({ message: expect.stringMatching(`${path} (is a link|belongs to another user)`) })

    it('is refused if it is a link, and the linked folder stays as it is', () => {
      const linked = join(home, 'linked')
      mkdirSync(linked, { mode: 0o755 })
      symlinkSync(linked, root)
      expect(() => new StateFolder(root)).toThrow(refusal('.headgate'))
      expect([statSync(linked).mode & 0o777, readdirSync(linked)]).toEqual([0o755, []])
    })

    it.each(['lock.db', 'state.db', 'secrets', 'secrets/shop'])(
      'is refused if %s is a link, and the linked file stays as it is',
      (name) => {
        const linked = join(home, 'linked')
        writeFileSync(linked, 'precious')
        mkdirSync(join(root, name, '..'), { recursive: true })
        symlinkSync(linked, join(root, name))
        expect(() => new StateFolder(root)).toThrow(refusal(name))
        expect(readFileSync(linked, 'utf8')).toBe('precious')
      },
    )

    it('is taken with links in folders of other programs, to which nothing is written', () => {
      mkdirSync(join(root, 'test-runs'), { recursive: true })
      symlinkSync(home, join(root, 'test-runs', 'linked'))
      new StateFolder(root).close()
    })

    it('is refused if it belongs to another user', () => {
      const isRoot = process.getuid?.() === 0
      if (isRoot) {
        mkdirSync(root)
        chownSync(root, 12_345, 12_345)
      }
      expect(() => new StateFolder(isRoot ? root : '/usr')).toThrow(refusal(''))
    })
  })

  it('writes each entry of a Secret as a file that only this user can read', async () => {
    mkdirSync(root, { mode: 0o755 })
    const { store } = open()
    await store.create(secrets, secret)
    expect(readFileSync(valueFile(), 'utf8')).toBe('sk-value')
    expect(statSync(valueFile()).mode & 0o777).toBe(0o600)
    for (const folder of [root, join(root, 'secrets'), join(root, 'secrets', 'shop'), join(root, 'secrets', 'shop', 'bot')]) {
      expect(statSync(folder).mode & 0o777).toBe(0o700)
    }
  })

  it('gives a restarted program the same objects: uid, version, status, finalizers, deletion mark and bytes', async () => {
    const first = open()
    await first.store.create(secrets, secret)
    await first.store.create(apiKeys, key)
    await first.store.applyStatus(apiKeys, { ...key, status: { keyID: 'abc' } })
    await first.store.remove(apiKeys, { namespace: 'shop', name: 'bot' })
    first.state.close()
    const second = open()
    const ref = { namespace: 'shop', name: 'bot' }
    expect(await second.store.get(secrets, ref)).toEqual(await first.store.get(secrets, ref))
    expect(await second.store.get(apiKeys, ref)).toEqual(await first.store.get(apiKeys, ref))
    expect((await second.store.get(apiKeys, ref))?.metadata.deletionTimestamp).toBeDefined()
  })

  it('changes and removes entries with the Secret', async () => {
    const { store } = open()
    const created = await store.create(secrets, secret)
    await store.update(secrets, { ...created, data: { SERVICE_API_KEY: Buffer.from('sk-other').toString('base64') } })
    expect(readFileSync(valueFile(), 'utf8')).toBe('sk-other')
    expect(existsSync(join(root, 'secrets', 'shop', 'bot', 'raw'))).toBe(false)
    await store.remove(secrets, { namespace: 'shop', name: 'bot' })
    expect(readdirSync(join(root, 'secrets', 'shop'))).toEqual([])
  })

  it('treats a Secret whose folder was removed as deleted', async () => {
    await created()
    rmSync(join(root, 'secrets', 'shop', 'bot'), { recursive: true })
    expect(await open().store.list(secrets, '')).toEqual([])
  })

  it('keeps the entries of the Secrets of the operator out of the files', async () => {
    const isInternal = ({ namespace }: { namespace: string }): boolean => namespace === 'shop'
    const state = new StateFolder(root, [], isInternal)
    const store = new ObjectStore({ persist: (change) => state.persist(change) })
    await store.create(secrets, secret)
    expect(existsSync(join(root, 'secrets'))).toBe(false)
    expect(state.load()).toMatchObject([{ object: { data: secret.data } }])
  })

  it.each(['../../evil', '..', '.', 'a/b', ''])('refuses the data key %j and keeps the present entries', async (dataKey) => {
    const { store } = open()
    const created = await store.create(secrets, secret)
    await expect(store.update(secrets, { ...created, data: { [dataKey]: 'eA==' } })).rejects.toThrow('not a valid name')
    await expect(store.create(secrets, { ...secret, metadata: { name: `x${dataKey}/..`, namespace: 'shop' } })).rejects.toThrow(
      'not a valid name',
    )
    expect(await store.get(secrets, { namespace: 'shop', name: 'bot' })).toEqual(created)
    expect(readdirSync(home)).toEqual(['.headgate'])
  })

  it('is free once its process was killed', async () => {
    const script = `import { StateFolder } from ${JSON.stringify(join(import.meta.dirname, 'state-folder.ts'))}
      globalThis.state = new StateFolder(${JSON.stringify(root)}); console.log('locked'); setInterval(() => {}, 1000)`
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void holder.kill('SIGKILL'))
    await once(holder.stdout, 'data')
    expect(() => new StateFolder(root)).toThrow(`in use by another Headgate (process ${holder.pid})`)
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    new StateFolder(root).close()
  })

  it.each([
    ['all Secrets', 'secrets'],
    ['the Secrets of a namespace', 'secrets/shop'],
    ['a Secret', 'secrets/shop/bot'],
    ['the database', 'state.db'],
  ])('ends the start when a part cannot be read, and deletes nothing: %s', async (_, part) => {
    await created()
    renameSync(join(root, part), join(home, 'kept'))
    writeFileSync(join(root, part), 'x'.repeat(10_000)) // root lacks no rights
    expect(() => open()).toThrow(new RegExp(`${part}\\S*: cannot be used \\(.*\\); make it readable .*; nothing was changed or deleted`))
    rmSync(join(root, part))
    renameSync(join(home, 'kept'), join(root, part))
    const again = open()
    expect(await again.store.get(secrets, { namespace: 'shop', name: 'bot' })).toBeDefined()
    expect(await again.store.get(apiKeys, { namespace: 'shop', name: 'bot' })).toBeDefined()
  })

  it.each(['empty', 'missing'])('does not take the %s database of present keys for a new one', async (how) => {
    await created()
    if (how === 'empty') writeFileSync(join(root, 'state.db'), '')
    else rmSync(join(root, 'state.db'))
    expect(() => open()).toThrow(/state\.db: cannot be used \(it is empty, and \S+secrets has keys\)/)
    expect(readFileSync(valueFile(), 'utf8')).toBe('sk-value')
  })

  it('refuses the database of another version', async () => {
    await created()
    using database = new DatabaseSync(join(root, 'state.db'))
    database.exec('PRAGMA user_version = 7')
    expect(() => open()).toThrow(/written by another version of Headgate, as version 7/)
  })

  it('is read by make status while a program uses it, and has no status before the first start', async () => {
    expect(readStoredStatus(root)).toBeUndefined()
    const { store, state } = open()
    await store.create(apiKeys, key)
    const run = { pid: 7, baseURL: 'http://127.0.0.1:1', usageURL: 'http://127.0.0.1:2', manifests: 'm', startedMs: 1 }
    state.setFact('run', run)
    expect(readStoredStatus(root)).toMatchObject({ run, objects: [{ resource: apiKeys, object: { metadata: { name: 'bot' } } }] })
    expect(readdirSync(root)).not.toContain('secrets')
    state.close()
    writeFileSync(join(root, 'state.db'), 'x'.repeat(10_000))
    expect(() => readStoredStatus(root)).toThrow(/state\.db: .*; run `make status` as the user who ran `make run`/)
  })
})
