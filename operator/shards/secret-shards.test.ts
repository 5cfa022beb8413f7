import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { foreignNote, idsOfShard, type Note, notesData, notesIn, plainCodec } from '../../test/support/plain-codec.ts'
import { KubeError } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { SecretShards } from './secret-shards.ts'
import { shardOf } from './shard.ts'
import { EntryUnreadable, ShardFull } from './shard-writer.ts'

const NAMESPACE = 'headgate'
const note = (id: string, text = 'text'): Note => ({ id, text })
const lost = (): never => {
  throw new KubeError('Unreachable', 0, 'no answer')
}

let kube: FakeKubePort
let clock: ManualClock
let warnings: string[]
let settled: Array<readonly [string, Error | undefined]>
let isLeading: boolean

beforeEach(() => {
  kube = new FakeKubePort()
  clock = new ManualClock()
  warnings = []
  settled = []
  isLeading = true
})

async function opened(shards = 1, limitBytes = 10_000, onAdopted?: (ids: Iterable<string>) => void): Promise<SecretShards<Note>> {
  const set = new SecretShards<Note>({
    kube,
    namespace: NAMESPACE,
    clock,
    assertLeading: () => {
      if (!isLeading) throw new Error('not the leader')
    },
    warn: (message) => warnings.push(message),
    set: 'keyring',
    shards,
    codec: () => plainCodec,
    remedy: 'raise keyring.shards',
    limitBytes,
    onAdopted,
  })
  set.onSettled((id, error) => settled.push([id, error]))
  await set.load()
  return set
}

async function committed(set: SecretShards<Note>, ...notes: Note[]): Promise<void> {
  for (const one of notes) set.commit(one, 'change')
  await clock.advance(100)
}

const writes = (): number => kube.calls.filter(({ verb }) => verb === 'create' || verb === 'update').length
const ref = (shard = 0, shards = 1) => ({ namespace: NAMESPACE, name: `hg-keyring-${shards}-${shard}` })
const stored = (shard = 0, shards = 1): Promise<Secret | undefined> => kube.get(secrets, ref(shard, shards))
const texts = async (shard = 0, shards = 1): Promise<readonly string[]> => notesIn((await stored(shard, shards))?.data).slice(1)
const errorOf = (id: string): Error | undefined => settled.findLast(([settledId]) => settledId === id)?.[1]

/** Writes a shard as another process does. */
async function put(data: Record<string, string>, shard = 0, shards = 1): Promise<void> {
  const present = await stored(shard, shards)
  const { namespace, name } = ref(shard, shards)
  const metadata = { namespace, name, labels: { 'headgate.dev/shards': 'keyring' } }
  if (present) await kube.update(secrets, { ...present, data })
  else await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data })
}

describe('a commit', () => {
  test('is reported when it is durable, and the next process reads it', async () => {
    const set = await opened()
    set.commit(note('a'), 'create')
    expect([set.get('a'), set.pending('a'), set.state('a'), settled]).toEqual([undefined, note('a'), 'Pending', []])
    await clock.advance(10)
    expect([set.get('a'), set.pending('a'), set.state('a')]).toEqual([note('a'), undefined, 'Durable'])
    expect(settled).toEqual([['a', undefined]])
    expect([...(await opened()).entries()]).toEqual([note('a')])
    expect(await stored()).toMatchObject({
      type: 'Opaque',
      metadata: { labels: { 'headgate.dev/shards': 'keyring', 'app.kubernetes.io/managed-by': 'headgate-operator' } },
    })
  })

  test('of an entry that no process could read again is refused at once, so that other entries are not affected', async () => {
    const set = await opened()
    expect(() => set.commit(note('a', 'two\nlines'), 'create')).toThrow(RangeError)
    expect(set.state('a')).toBe('Durable')
  })

  test('of an unchanged entry writes nothing', async () => {
    const set = await opened()
    await committed(set, note('a'))
    const before = writes()
    await committed(set, note('a'))
    expect(writes()).toBe(before)
    expect(settled).toHaveLength(2)
  })

  test('made twice while a write is under way ends with the later one', async () => {
    const set = await opened()
    const release = Promise.withResolvers<void>()
    kube.before = ({ verb }) => (verb === 'create' ? release.promise : undefined)
    set.commit(note('a', 'one'), 'change')
    await clock.advance(10)
    set.commit(note('a', 'two'), 'change')
    release.resolve()
    await clock.advance(10)
    expect(await texts()).toEqual(['v1 a two'])
    expect(set.state('a')).toBe('Durable')
  })

  test('that fails is reported with the error, and memory stays unchanged', async () => {
    const set = await opened()
    kube.before = ({ verb }) => (verb === 'create' ? lost() : undefined)
    await committed(set, note('a'))
    expect(errorOf('a')).toMatchObject({ message: 'no answer' })
    expect([set.get('a'), set.state('a')]).toEqual([undefined, 'Durable'])
    kube.before = () => undefined
    await committed(set, note('b'))
    expect(await texts()).toEqual(['v1 b text'])
  })

  test('whose answer was lost is detected by the next try', async () => {
    const set = await opened()
    await committed(set, note('a'))
    kube.after = ({ verb }) => (verb === 'update' ? lost() : undefined)
    await committed(set, note('b'))
    expect(errorOf('b')).toBeInstanceOf(KubeError)
    kube.after = () => undefined
    await committed(set, note('b'))
    expect(errorOf('b')).toBeUndefined()
    expect(await texts()).toEqual(['v1 a text', 'v1 b text'])
  })

  test('merges with later writes of other processes', async () => {
    const set = await opened()
    await committed(set, note('a'))
    await committed(await opened(), note('b'))
    await committed(set, note('c'))
    expect(await texts()).toEqual(['v1 a text', 'v1 b text', 'v1 c text'])
    expect([...set.entries()]).toHaveLength(3)
  })

  test('of an entry that another process has changed meanwhile is refused, and its author decides again', async () => {
    const adopted: string[] = []
    const [deposed, leader] = [await opened(1, 10_000, (ids) => adopted.push(...ids)), await opened()]
    await committed(leader, note('a', 'new'), note('b', 'new'))
    await committed(deposed, note('a', 'old'), note('c', 'old'))
    expect(await texts()).toEqual(['v1 a new', 'v1 b new', 'v1 c old'])
    expect(errorOf('a')).toMatchObject({ code: 'Conflict' })
    expect(adopted).toEqual(['a', 'b'])
    await committed(deposed, note('a', 'decided again'))
    expect(await texts()).toContain('v1 a decided again')
  })

  test('that only removes what another process has changed meanwhile is refused', async () => {
    const [deposed, leader] = [await opened(), await opened()]
    await committed(leader, note('a'))
    await committed(deposed, note('b'))
    await committed(leader, note('a', 'changed'))
    deposed.remove('a', 'urgent')
    await clock.advance(100)
    expect(await texts()).toEqual(['v1 a changed', 'v1 b text'])
  })

  test('that rides along gives way to what another process has written meanwhile', async () => {
    const [deposed, leader] = [await opened(), await opened()]
    await committed(deposed, note('a', 'minted'))
    await committed(leader, note('b'))
    await committed(leader, note('a', 'revoked'))
    deposed.commitLater(note('a', 'issued'))
    await clock.advance(6_000)
    expect([await texts(), deposed.get('a')?.text]).toEqual([['v1 a revoked', 'v1 b text'], 'revoked'])
  })

  test('by a deposed leader is refused', async () => {
    const set = await opened()
    isLeading = false
    await committed(set, note('a'))
    expect(errorOf('a')).toMatchObject({ message: 'not the leader' })
    expect(writes()).toBe(0)
  })

  test('keeps a mark that rides along when it is refused itself', async () => {
    const set = await opened(1, 200)
    await committed(set, note('a', 'minted'))
    set.commitLater(note('a', 'issued'))
    await committed(set, note('a', 'x'.repeat(500)))
    expect(errorOf('a')).toBeInstanceOf(ShardFull)
    expect(set.get('a')?.text).toBe('issued')
    await clock.advance(6_000)
    expect(await texts()).toEqual(['v1 a issued'])
  })
})

test('a removed entry leaves the others', async () => {
  const set = await opened()
  await committed(set, note('a'), note('b'))
  set.remove('a', 'background')
  expect(set.state('a')).toBe('Pending')
  await clock.advance(10)
  expect([await texts(), set.get('a')]).toEqual([['v1 b text'], undefined])
})

test('an id has the same shard in every process and release, and ids are spread evenly', () => {
  // fixed values: another rule would leave every issued key in a shard that no process reads
  expect(['a', 'b', 'c', '7d3c1e2a-5a1b-4c39-9f0e-0c1d2e3f4a5b'].map((uid) => shardOf(uid, 32))).toEqual([25, 7, 5, 9])
  const counts = Map.groupBy(
    Array.from({ length: 4_000 }, (_, n) => shardOf(`7d3c1e2a-${n}`, 32)),
    (shard) => shard,
  )
  expect([counts.size, Math.max(...counts.keys()), Math.max(...[...counts.values()].map(({ length }) => length)) < 260]).toEqual([
    32,
    31,
    true,
  ])
})

test('only Secrets with the label of the set are listed, in one call', async () => {
  await committed(await opened(4), note('a'))
  await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'sh.helm.release', namespace: NAMESPACE } })
  kube.calls.length = 0
  const set = await opened(4)
  expect(kube.calls.map(({ verb }) => verb)).toEqual(['list'])
  expect([...set.entries()]).toEqual([note('a')])
})

describe('a missing or damaged shard', () => {
  test('is written again from memory after its deletion', async () => {
    const set = await opened()
    await committed(set, note('a'))
    await kube.remove(secrets, ref())
    set.check()
    await clock.advance(10)
    expect(await texts()).toEqual(['v1 a text'])
    expect(warnings).toEqual([expect.stringContaining('vanished')])
  })

  test('is copied before it is written again from memory', async () => {
    const set = await opened()
    await committed(set, note('a'))
    await put({ notes: 'ZGFtYWdl' })
    set.check()
    await clock.advance(10)
    expect(await texts()).toEqual(['v1 a text'])
    const [kept] = (await kube.list(secrets, NAMESPACE)).filter(({ metadata }) => metadata.name.includes('damaged'))
    expect(kept).toMatchObject({
      type: 'Opaque',
      data: { notes: 'ZGFtYWdl' },
      metadata: { name: expect.stringMatching(/^hg-keyring-1-0-damaged-[0-9a-f]{8}$/) },
    })
    expect(warnings).toEqual([expect.stringMatching(/hg-keyring-1-0 is damaged .* kept in hg-keyring-1-0-damaged-/)])
  })

  test('counts as empty at a start, is copied once, and is not written before its entries are known', async () => {
    await put({ notes: 'ZGFtYWdl' }, 0, 2)
    const [lostId = '', otherId = ''] = [idsOfShard(0, 2, 1), idsOfShard(1, 2, 1)].flat()
    await opened(2)
    const set = await opened(2)
    expect([set.isDamaged(lostId), set.isDamaged(otherId)]).toEqual([true, false])
    expect((await stored(0, 2))?.data).toEqual({ notes: 'ZGFtYWdl' })
    await committed(set, note(lostId))
    expect(await texts(0, 2)).toEqual([`v1 ${lostId} text`])
    expect((await kube.list(secrets, NAMESPACE, 'headgate.dev/shards=damaged')).map(({ data }) => data)).toEqual([{ notes: 'ZGFtYWdl' }])
  })

  test('with one damaged entry keeps all other entries', async () => {
    await put(notesData(['v1 a text', '???', 'v1 b text']))
    const set = await opened()
    expect([...set.entries()]).toEqual([note('a'), note('b')])
    expect(set.isDamaged('a')).toBe(true)
    expect(await kube.list(secrets, NAMESPACE, 'headgate.dev/shards=damaged')).toHaveLength(1)
  })

  test('is not overwritten while it cannot be copied', async () => {
    await put({ notes: 'ZGFtYWdl' })
    kube.before = ({ verb, name }) => {
      if (verb === 'create' && name.includes('damaged')) throw new KubeError('Forbidden', 403, 'a quota')
    }
    const set = await opened()
    await committed(set, note('a'))
    expect(errorOf('a')).toMatchObject({ message: 'a quota' })
    expect((await stored())?.data).toEqual({ notes: 'ZGFtYWdl' })
  })

  test('is distinguished from an intact shard, which a check does not write', async () => {
    const set = await opened()
    await committed(set, note('a'))
    const before = writes()
    set.check()
    await clock.advance(10)
    expect([writes(), warnings]).toEqual([before, []])
  })
})

describe('an entry or shard of another version', () => {
  test('stays unchanged, in its place, when other entries of its shard change', async () => {
    const foreign = foreignNote('b', '{"a field":  "that nobody here knows"}')
    await put(notesData(['v1 a text', foreign, 'v1 c text']))
    const set = await opened()
    await committed(set, note('a', 'changed'), note('d'))
    expect(await texts()).toEqual(['v1 a changed', foreign, 'v1 c text', 'v1 d text'])
    expect(warnings).toEqual([])
  })

  test('cannot be changed or removed by its id, and is reported', async () => {
    await put(notesData([foreignNote('b', 'x'), 'v1 c text']))
    const set = await opened()
    expect([set.isUnreadable('b'), set.isUnreadable('c')]).toEqual([true, false])
    expect([...set.unreadable()]).toEqual([{ secret: 'hg-keyring-1-0', id: 'b', why: 'version 2' }])
    set.remove('b', 'urgent')
    await committed(set, note('c', 'changed'))
    expect(errorOf('b')).toBeInstanceOf(EntryUnreadable)
    expect(errorOf('c')).toBeUndefined()
    expect(await texts()).toEqual([foreignNote('b', 'x'), 'v1 c changed'])
  })

  test('that replaces one with a change under way refuses that change alone, and the shard works on', async () => {
    await put(notesData(['v1 b text', 'v1 c text']))
    const set = await opened()
    await put(notesData([foreignNote('b', 'x'), 'v1 c text']))
    await committed(set, note('b', 'changed'), note('c', 'changed'))
    expect(errorOf('b')).toBeInstanceOf(EntryUnreadable)
    expect(errorOf('c')).toBeUndefined()
    expect(await texts()).toEqual([foreignNote('b', 'x'), 'v1 c changed'])
    expect(warnings).toEqual([])
  })

  test('is never written as a whole shard, its ids are unknown, and the other shards work', async () => {
    const data = notesData(['what ever'], 'v2')
    await put(data, 0, 2)
    const set = await opened(2)
    const [inside = '', outside = ''] = [idsOfShard(0, 2, 1), idsOfShard(1, 2, 1)].flat()
    expect([set.isUnreadable(inside), set.isUnreadable(outside), set.isDamaged(inside)]).toEqual([true, false, false])
    expect([...set.unreadable()]).toEqual([{ secret: 'hg-keyring-2-0', id: undefined, why: 'version 2' }])
    await committed(set, note(inside), note(outside))
    set.check()
    await clock.advance(10)
    expect(errorOf(inside)).toMatchObject({ message: expect.stringContaining('another version') })
    expect(errorOf(outside)).toBeUndefined()
    expect((await stored(0, 2))?.data).toEqual(data)
    expect(warnings).toHaveLength(1)
  })

  test('is read again when a readable version has replaced it', async () => {
    await put(notesData([], 'v2'))
    const set = await opened()
    await put(notesData(['v1 a text']))
    set.check()
    await clock.advance(10)
    expect([set.get('a'), set.isUnreadable('a')]).toEqual([note('a'), false])
  })
})

describe('a full shard', () => {
  const big = (id: string, bytes = 1_000): Note => note(id, randomBytes(bytes / 2).toString('hex'))
  const full = async (): Promise<SecretShards<Note>> => {
    const set = await opened(1, 10_000)
    await committed(set, ...'abcdefghi'.split('').map((id) => big(id)), note('small', 'Active'))
    return set
  }

  test('takes changes that fit, and refuses other changes with bytes, bound and remedy', async () => {
    const set = await full()
    await committed(set, big('fat', 5_000), note('new'), big('a', 4_000))
    expect(errorOf('fat')).toMatchObject({
      message: expect.stringMatching(/^keyring shard 0 \(Secret hg-keyring-1-0\) would hold \d+ bytes, above 10000: raise keyring.shards$/),
    })
    expect([errorOf('fat'), errorOf('a')].every((error) => error instanceof ShardFull)).toBe(true)
    expect(errorOf('new')).toBeUndefined()
    expect(set.get('a')?.text).toHaveLength(1_000)
    expect(set.get('new')).toEqual(note('new'))
    expect(warnings).toEqual([expect.stringMatching(/keyring shard 0 holds \d+ of 10000 bytes: raise keyring.shards/)])
  })

  test('takes revocations, removals and smaller entries, even beside refused changes', async () => {
    const set = await full()
    await committed(set, big('filler', 700))
    for (let n = 0; n < 20; n++) set.commit(big(`fat-${n}`), 'create')
    set.commit(note('small', 'Revoked, and a little longer'), 'urgent')
    set.commit(note('a', 'short'), 'change')
    set.remove('b', 'background')
    await clock.advance(100)
    expect(set.get('small')?.text).toBe('Revoked, and a little longer')
    expect([set.get('a')?.text, set.get('b')]).toEqual(['short', undefined])
    expect(['small', 'a', 'b'].map(errorOf)).toEqual([undefined, undefined, undefined])
  })

  test('that the API server refuses as too large is written in parts, restrictions first', async () => {
    const set = await opened(1, 1_000_000)
    await committed(set, note('a', 'Active'), note('b', 'Active'))
    const sizes: number[] = []
    kube.before = async ({ verb }) => {
      if (verb === 'update') sizes.push(set.pendingCount)
    }
    const update = kube.update.bind(kube)
    kube.update = (resource, object) => {
      const text = Buffer.from((object as unknown as Secret).data?.['notes'] ?? '', 'base64').toString()
      return text.includes('fat') ? Promise.reject(new KubeError('Invalid', 422, 'too many bytes')) : update(resource, object)
    }
    for (const id of ['c', 'd', 'e']) set.commit(note(id), 'create')
    set.commit(note('f', 'fat'), 'create')
    set.commit(note('a', 'Revoked'), 'urgent')
    await clock.advance(100)
    expect(sizes[0]).toBe(5)
    expect(settled.slice(2).map(([id]) => id)[0]).toBe('a')
    expect(errorOf('f')).toMatchObject({ code: 'Invalid' })
    expect(['a', 'c', 'd', 'e'].map(errorOf)).toEqual([undefined, undefined, undefined, undefined])
    expect(await texts()).toEqual(['v1 a Revoked', 'v1 b Active', 'v1 c text', 'v1 d text', 'v1 e text'])
  })
})

describe('a large shard', () => {
  const SECOND_BYTES = 44 * 1024
  const large = note('large', 'x'.repeat(10 * SECOND_BYTES))

  test.each([
    ['that ride', (set: SecretShards<Note>, one: Note) => set.commitLater(one)],
    ['of the background', (set: SecretShards<Note>, one: Note) => set.commit(one, 'background')],
  ])('is written at a bounded rate for changes %s', async (_, change) => {
    const set = await opened(1, 1_000_000)
    await committed(set, large)
    const before = writes()
    for (let second = 0; second < 60; second += 1) {
      change(set, note('a', String(second)))
      await clock.advance(1_000)
    }
    expect(writes() - before).toBeLessThanOrEqual(6)
    expect(writes() - before).toBeGreaterThanOrEqual(5)
  })

  test('is written at once for any other change', async () => {
    const set = await opened(1, 1_000_000)
    await committed(set, large)
    await committed(set, note('a'))
    expect(await texts()).toHaveLength(2)
    expect(settled.at(-1)).toEqual(['a', undefined])
  })
})
