import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { decodeKeyringShard, type KeyringLine, keyringSecretName, RECORDS_KEY } from '../../gateway/shared/keyring-line.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { issuedKey, keyringLine } from '../../test/support/records.ts'
import { KubeError } from '../kube/port.ts'
import { type Secret, secrets } from '../kube/resources.ts'
import { Keyring } from './keyring.ts'

const NAMESPACE = 'headgate'
const line = (uid: string, change: Partial<KeyringLine> = {}): KeyringLine => keyringLine(issuedKey(uid).record, { ...change })
const lost = (): never => {
  throw new KubeError('Unreachable', 0, 'no answer')
}

describe('Keyring', () => {
  let kube: FakeKubePort
  let warnings: string[]
  let isLeading: boolean

  beforeEach(() => {
    kube = new FakeKubePort()
    warnings = []
    isLeading = true
  })

  async function opened(shards = 1): Promise<Keyring> {
    const assertLeading = (): void => {
      if (!isLeading) throw new Error('not the leader')
    }
    const keyring = new Keyring({ kube, namespace: NAMESPACE, shards, assertLeading, warn: (message) => warnings.push(message) })
    await keyring.load()
    return keyring
  }

  const writes = (): number => kube.calls.filter(({ verb }) => verb === 'create' || verb === 'update').length
  const stored = (shard = 0, shards = 1): Promise<Secret | undefined> =>
    kube.get(secrets, { namespace: NAMESPACE, name: keyringSecretName(shards, shard) })
  async function storedLines(shard = 0, shards = 1): Promise<readonly KeyringLine[]> {
    const text = (await stored(shard, shards))?.data?.[RECORDS_KEY]
    return text === undefined ? [] : decodeKeyringShard(Buffer.from(text, 'base64')).lines
  }
  const storedUids = async (shard = 0, shards = 1): Promise<string[]> => (await storedLines(shard, shards)).map(({ uid }) => uid)
  const remove = (shard = 0, shards = 1): Promise<unknown> =>
    kube.remove(secrets, { namespace: NAMESPACE, name: keyringSecretName(shards, shard) })

  test('a line is durable when its commit resolves, and the next process reads it back', async () => {
    const first = line('a')
    await (await opened()).commit(first)
    expect(await storedLines()).toEqual([first])
    expect((await opened()).get('a')).toEqual(first)
    expect((await stored())?.metadata.labels).toMatchObject({ 'headgate.dev/keyring': 'true' })
  })

  test('keys made together share one PUT, those of another shard have their own', async () => {
    const keyring = await opened(2)
    const uids = Array.from({ length: 20 }, (_, index) => `key-${index}`)
    await Promise.all(uids.map((uid) => keyring.commit(line(uid))))
    expect(writes()).toBe(2)
    expect([...(await storedUids(0, 2)), ...(await storedUids(1, 2))].sort()).toEqual([...uids].sort())
  })

  test('commits that come while a PUT is under way share the next one', async () => {
    const keyring = await opened()
    const arrived = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    kube.before = ({ verb }) => {
      if (verb !== 'create') return
      arrived.resolve()
      return release.promise
    }
    const first = keyring.commit(line('a'))
    await arrived.promise
    const later = ['b', 'c', 'd'].map((uid) => keyring.commit(line(uid)))
    release.resolve()
    await Promise.all([first, ...later])
    expect(writes()).toBe(2)
    expect(await storedUids()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('of two commits of one key the later one stands', async () => {
    const keyring = await opened()
    await Promise.all([keyring.commit(line('a', { st: 'Active' })), keyring.commit(line('a', { st: 'Suspended' }))])
    expect((await storedLines()).map(({ st }) => st)).toEqual(['Suspended'])
  })

  test('a forgotten key leaves the others', async () => {
    const keyring = await opened()
    await Promise.all([keyring.commit(line('a')), keyring.commit(line('b'))])
    await keyring.forget('a')
    expect(await storedUids()).toEqual(['b'])
    expect(keyring.get('a')).toBeUndefined()
  })

  test('a shard that somebody else has written since is merged, not overwritten', async () => {
    const keyring = await opened()
    await keyring.commit(line('a'))
    await (await opened()).commit(line('b'))
    await keyring.commit(line('c'))
    expect(await storedUids()).toEqual(['a', 'b', 'c'])
    expect([...keyring.lines()].map(({ uid }) => uid)).toEqual(['a', 'b', 'c'])
  })

  test('a commit whose answer was lost fails, and its repetition finds what stands there and writes once more', async () => {
    const keyring = await opened()
    await keyring.commit(line('a'))
    kube.after = ({ verb }) => (verb === 'update' ? lost() : undefined)
    const second = line('b')
    await expect(keyring.commit(second)).rejects.toThrow('no answer')
    kube.after = () => undefined
    await keyring.commit(second)
    expect(await storedUids()).toEqual(['a', 'b'])
  })

  test('a failed commit leaves memory as it was, and the commits after it go on', async () => {
    const keyring = await opened()
    kube.before = ({ verb }) => (verb === 'create' ? lost() : undefined)
    await expect(keyring.commit(line('a'))).rejects.toThrow('no answer')
    expect(keyring.get('a')).toBeUndefined()
    kube.before = () => undefined
    await keyring.commit(line('b'))
    expect(await storedUids()).toEqual(['b'])
  })

  test('a shard that was deleted comes back with the next commit, from memory', async () => {
    const keyring = await opened()
    await keyring.commit(line('a'))
    await remove()
    await keyring.commit(line('b'))
    expect(await storedUids()).toEqual(['a', 'b'])
  })

  test('a shard that was deleted while a write of it failed comes back all the same', async () => {
    const keyring = await opened()
    await keyring.commit(line('a'))
    kube.before = ({ verb }) => (verb === 'update' ? lost() : undefined)
    await expect(keyring.commit(line('b'))).rejects.toThrow('no answer')
    kube.before = () => undefined
    await remove()
    await keyring.commit(line('c'))
    expect(await storedUids()).toEqual(['a', 'c'])
  })

  test('a check writes a vanished and a damaged shard anew, with a warning, and a sound one not at all', async () => {
    const keyring = await opened()
    await keyring.commit(line('a'))
    await remove()
    keyring.check()
    await expect.poll(() => storedUids()).toEqual(['a'])
    const secret = await stored()
    if (!secret) throw new Error('no shard')
    await kube.update(secrets, { ...secret, data: { [RECORDS_KEY]: 'bm8gZ3ppcA==' } })
    keyring.check()
    await expect.poll(() => storedUids().catch(() => [])).toEqual(['a'])
    expect(warnings).toEqual([expect.stringContaining('vanished'), expect.stringContaining('cannot be read')])
    const before = writes()
    const reads = kube.calls.length
    keyring.check()
    await expect.poll(() => kube.calls.length).toBeGreaterThan(reads)
    await keyring.flush()
    expect(writes()).toBe(before)
  })

  test('a shard that is damaged at the start is reported and does not stop the others', async () => {
    await (await opened(2)).commit(line('a'))
    const shard = (await storedUids(0, 2)).length > 0 ? 1 : 0
    const damaged = { name: keyringSecretName(2, shard), namespace: NAMESPACE }
    await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: damaged, data: { [RECORDS_KEY]: 'bm8gZ3ppcA==' } })
    const keyring = await opened(2)
    expect([...keyring.lines()].map(({ uid }) => uid)).toEqual(['a'])
    expect(warnings).toEqual([expect.stringContaining(damaged.name)])
  })

  test('a leader that was deposed writes nothing', async () => {
    const keyring = await opened()
    await keyring.commit(line('a'))
    isLeading = false
    await expect(keyring.commit(line('b'))).rejects.toThrow('not the leader')
    await expect(keyring.forget('a')).rejects.toThrow('not the leader')
    expect(await storedUids()).toEqual(['a'])
  })

  test('a line that nobody could read again is refused, so that it does not cost the others of its shard', async () => {
    const keyring = await opened()
    await keyring.commit(line('a'))
    await expect(keyring.commit(line('b', { exp: -1 }))).rejects.toThrow(/exp/)
    expect(await storedUids()).toEqual(['a'])
  })

  test('what rides along is in force at once, goes with the next PUT, and is written before a clean end', async () => {
    const keyring = await opened()
    await keyring.commit(line('a', { gen: 1 }))
    keyring.commitLater(line('a', { gen: 2 }))
    expect(keyring.get('a')?.gen).toBe(2)
    expect([...keyring.lines()].map(({ gen }) => gen)).toEqual([2])
    expect((await storedLines()).map(({ gen }) => gen)).toEqual([1])
    await keyring.commit(line('b', { gen: 1 }))
    expect((await storedLines()).map(({ gen }) => gen)).toEqual([2, 1])
    expect(writes()).toBe(2)
    keyring.commitLater(line('b', { gen: 5 }))
    await keyring.flush()
    expect((await storedLines()).map(({ gen }) => gen)).toEqual([2, 5])
  })

  describe('above 900 KiB', () => {
    const noise = (): string => randomBytes(80_000).toString('base64') // does not compress
    const big = (uid: string): KeyringLine => line(uid, { models: [[noise()]] })

    test('no further key is taken, with an error that names the cure; keys that are there change all the same', async () => {
      const keyring = await opened()
      for (const uid of 'abcdefghijk') await keyring.commit(big(uid))
      expect(warnings.at(-1)).toMatch(/holds \d+ of 921600 bytes: raise keyring.shards/)
      const full = await storedUids()
      const [refused, changed] = await Promise.allSettled([keyring.commit(big('l')), keyring.commit(big('a'))])
      expect(refused).toMatchObject({
        status: 'rejected',
        reason: { message: expect.stringMatching(/above 921600: raise keyring.shards/) },
      })
      expect(changed.status).toBe('fulfilled')
      const revoked = line('a', { models: [[noise() + noise()]], st: 'Revoked' })
      await keyring.commit(revoked)
      expect((await storedLines()).find(({ uid }) => uid === 'a')?.st).toBe('Revoked')
      expect(await storedUids()).toEqual(full)
    })
  })

  test('keys of a keyring with another number of shards move over, the newest line wins, and the old Secrets go', async () => {
    const before = await opened(4)
    const uids = ['a', 'b', 'c', 'd', 'e']
    await Promise.all(uids.map((uid) => before.commit(line(uid, { rev: 3 }))))
    const after = await opened(2)
    expect([...after.lines()].map(({ uid }) => uid).sort()).toEqual(uids)
    expect((await kube.list(secrets, NAMESPACE)).map(({ metadata }) => metadata.name).sort()).toEqual(['hg-keyring-2-0', 'hg-keyring-2-1'])
    const count = writes()
    expect([...(await opened(2)).lines()]).toHaveLength(5)
    expect(writes()).toBe(count)
  })
})
