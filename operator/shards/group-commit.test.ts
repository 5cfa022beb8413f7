import { beforeEach, describe, expect, test } from 'vitest'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { idsOfShard, type Note, plainCodec } from '../../test/support/plain-codec.ts'
import { SecretShards } from './secret-shards.ts'

const PUT_MS = 30
const note = (id: string, text = 'text'): Note => ({ id, text })

/** A set of shards with an API server that takes 30 ms for each write. */
class SlowSet {
  readonly clock = new ManualClock()
  readonly kube: FakeKubePort
  readonly shards: SecretShards<Note>
  backlog: (group: string) => number = () => 0
  /** When each write began, ms monotonic, with the name of its Secret. */
  readonly writes: Array<{ readonly at: number; readonly name: string }> = []
  inFlight = 0
  mostInFlight = 0

  constructor(shards: number, groupOf: (entry: Note) => string = () => '', store = new ObjectStore()) {
    this.kube = new FakeKubePort(store)
    this.kube.before = ({ verb, name }) => (verb === 'create' || verb === 'update' ? this.#write(name) : undefined)
    this.shards = new SecretShards<Note>({
      kube: this.kube,
      namespace: 'headgate',
      clock: this.clock,
      assertLeading: () => undefined,
      warn: () => undefined,
      set: 'keyring',
      shards,
      codec: () => plainCodec,
      limitBytes: 921_600,
      remedy: 'raise keyring.shards',
      groupOf,
      backlog: (group) => this.backlog(group),
    })
  }

  #write(name: string): Promise<void> {
    this.writes.push({ at: this.clock.monotonic(), name })
    this.inFlight += 1
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight)
    return new Promise((resolve) => {
      this.clock.after(PUT_MS, () => {
        this.inFlight -= 1
        resolve()
      })
    })
  }
}

describe('group commit', () => {
  let set: SlowSet
  beforeEach(async () => {
    set = new SlowSet(32)
    await set.shards.load()
  })

  test('a storm of 5,000 new keys at 130 per second costs at most 0.2 writes per key, with the marks that follow', async () => {
    set = new SlowSet(64)
    await set.shards.load()
    const { shards, clock, writes } = set
    const delivered: string[] = []
    let arrived = 0
    set.backlog = () => 5_000 - arrived
    shards.onSettled((id) => delivered.push(id))
    for (; arrived < 5_000; arrived++) {
      shards.commit(note(`key-${arrived}`), 'create')
      if (arrived % 4 !== 3) continue
      await clock.advance(4_000 / 130)
      for (const id of delivered.splice(0)) shards.commitLater(note(id, 'issued'))
    }
    await clock.advance(10_000)
    for (const id of delivered.splice(0)) shards.commitLater(note(id, 'issued'))
    await clock.advance(10_000)
    expect([...shards.entries()].filter(({ text }) => text === 'issued')).toHaveLength(5_000)
    expect(writes.length).toBeLessThanOrEqual(1_000)
  }, 30_000)

  test('a lone commit goes out after 5 ms', async () => {
    set.shards.commit(note('a'), 'create')
    await set.clock.advance(4)
    expect(set.writes).toHaveLength(0)
    await set.clock.advance(1)
    expect(set.writes).toHaveLength(1)
  })

  test('a lone commit of one tenant does not wait for the storm of another', async () => {
    const [mine = ''] = idsOfShard(3, 32, 1)
    set = new SlowSet(32, ({ text }) => text)
    set.backlog = (group) => (group === 'storm' ? 4_000 : 0)
    for (let n = 0; n < 20; n++) set.shards.commit(note(`key-${n}`, 'storm'), 'create')
    set.shards.commit(note(mine, 'lone'), 'create')
    await set.clock.advance(5)
    expect(set.writes.map(({ name }) => name)).toEqual(['hg-keyring-32-3'])
  })

  test('a lone commit of one tenant passes the full shards of a storm that wait for their turn', async () => {
    const shard = 3
    const [mine = ''] = idsOfShard(shard, 32, 1)
    set = new SlowSet(32, ({ text }) => text)
    const storm = [10, 11, 12, 13, 14, 15].flatMap((index) => idsOfShard(index, 32, 64))
    for (const id of storm) set.shards.commit(note(id, 'storm'), 'create')
    set.shards.commit(note(mine, 'lone'), 'create')
    await set.clock.advance(2 * PUT_MS)
    expect(set.writes.map(({ name }) => name).indexOf(`hg-keyring-32-${shard}`)).toBe(2) // after the two writes that were under way
  })

  test('an urgent change is written at once, and takes along what waits for its shard', async () => {
    const [first = '', second = '', third = ''] = idsOfShard(7, 32, 3)
    set.backlog = () => 4_000
    set.shards.commit(note(first), 'create')
    set.shards.commit(note(second), 'change')
    await set.clock.advance(100)
    expect(set.writes).toHaveLength(0)
    set.shards.commit(note(third), 'urgent')
    await set.clock.advance(0)
    expect(set.writes).toHaveLength(1)
    await set.clock.advance(PUT_MS)
    expect([first, second, third].map((id) => set.shards.state(id))).toEqual(['Durable', 'Durable', 'Durable'])
  })

  test('two writes are under way at most, and urgent ones up to four', async () => {
    const [urgent, other] = [
      [0, 1, 2, 3, 4, 5],
      [10, 11, 12, 13, 14],
    ].map((indexes) => indexes.flatMap((index) => idsOfShard(index, 32, 1)))
    for (const id of other ?? []) set.shards.commit(note(id), 'create')
    await set.clock.advance(6)
    expect(set.inFlight).toBe(2)
    for (const id of urgent ?? []) set.shards.commit(note(id), 'urgent')
    await set.clock.advance(0)
    expect(set.inFlight).toBe(4)
    await set.clock.advance(1_000)
    expect(set.mostInFlight).toBe(4)
    expect(set.shards.pendingCount).toBe(0)
  })

  describe('edits of one group that restrict, one after another without an end', () => {
    const STORMY = 31
    beforeEach(async () => {
      set = new SlowSet(32, ({ text }) => text.split(' ')[0] ?? '')
      await set.shards.load()
      set.backlog = (group) => (group === 'storm' ? 4_000 : 0)
    })

    /** Every 5 ms each shard except the last one gets such an edit. */
    async function storm(): Promise<void> {
      const ids = Array.from({ length: STORMY }, (_, index) => idsOfShard(index, 32, 1)[0] ?? '')
      for (let at = 0; at < 200; at += 1) {
        for (const id of ids) set.shards.commit(note(id, `storm ${at}`), 'urgent')
        await set.clock.advance(5)
      }
    }

    test('a new key of another group is durable with the second write at the latest', async () => {
      const [mine = ''] = idsOfShard(STORMY, 32, 1)
      const storming = storm()
      set.shards.commit(note(mine, 'lone'), 'create')
      await storming
      const write = set.writes.find(({ name }) => name === `hg-keyring-32-${STORMY}`)
      expect(write?.at).toBeLessThanOrEqual((set.writes[0]?.at ?? 0) + PUT_MS)
      expect(set.shards.state(mine)).toBe('Durable')
    })

    test('no shard is passed over', async () => {
      await storm()
      expect(new Set(set.writes.map(({ name }) => name)).size).toBe(STORMY)
    })
  })

  test('64 commits of one shard need not wait for more, and the fullest shard goes first', async () => {
    set.backlog = () => 4_000
    const counts = [2, 70, 64, 3].map((count, index) => idsOfShard(index, 32, count))
    for (const ids of counts) for (const id of ids) set.shards.commit(note(id), 'create')
    await set.clock.advance(0)
    expect(set.writes.map(({ name }) => name)).toEqual(['hg-keyring-32-1', 'hg-keyring-32-2'])
    await set.clock.advance(3_900)
    expect(set.writes).toHaveLength(2)
    await set.clock.advance(200)
    expect(set.writes).toHaveLength(4)
  })

  test('what comes while a write is under way shares the next one', async () => {
    const [first = '', ...later] = idsOfShard(5, 32, 9)
    set.shards.commit(note(first), 'create')
    await set.clock.advance(6)
    for (const id of later) set.shards.commit(note(id), 'create')
    await set.clock.advance(200)
    expect(set.writes).toHaveLength(2)
    expect(set.shards.pendingCount).toBe(0)
  })

  test('what rides along is in force at once, goes with the next write, and waits 5 s at most', async () => {
    const [first = '', second = ''] = idsOfShard(5, 32, 2)
    for (const id of [first, second]) set.shards.commit(note(id, 'minted'), 'create')
    await set.clock.advance(100)
    set.shards.commitLater(note(first, 'issued'))
    expect([set.shards.get(first)?.text, set.shards.state(first)]).toEqual(['issued', 'Durable'])
    await set.clock.advance(1_000)
    expect(set.writes).toHaveLength(1)
    set.shards.commit(note(second, 'changed'), 'change')
    await set.clock.advance(100)
    expect(set.writes).toHaveLength(2)
    set.shards.commitLater(note(second, 'issued'))
    await set.clock.advance(4_900)
    expect(set.writes).toHaveLength(2)
    await set.clock.advance(200)
    expect(set.writes).toHaveLength(3)
  })

  test('before a clean end everything that waits or rides along is written', async () => {
    set.backlog = () => 4_000
    for (let n = 0; n < 100; n++) set.shards.commit(note(`key-${n}`), 'create')
    await set.clock.advance(5_000)
    set.shards.commitLater(note('key-1', 'issued'))
    set.shards.commit(note('key-2', 'changed'), 'change')
    const flushed = set.shards.flush()
    await set.clock.advance(100)
    await flushed
    const again = new SlowSet(32, undefined, set.kube.store)
    await again.shards.load()
    expect([again.shards.get('key-1')?.text, again.shards.get('key-2')?.text]).toEqual(['issued', 'changed'])
    await set.shards.flush() // nothing left
  })
})
