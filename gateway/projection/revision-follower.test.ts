import { perKind } from '#contract/records/record-kinds.ts'
import { afterEach, describe, expect, test } from 'vitest'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { FaultySource, hurriedClock } from '../../test/support/faulty-source.ts'
import { issuedKey, recordText, writer, type IssuedKey } from '../../test/support/records.ts'
import { eventually, waitFor } from '../../test/support/wait-for.ts'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { ProjectionChange } from '../../operator/projection/store.ts'
import { KeyTable } from '../auth/key-table.ts'
import { RevisionFollower } from './revision-follower.ts'

const running: RevisionFollower[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((follower) => follower.stop()))
})

/** An operator's projection and a gateway process that follows it. */
class World {
  readonly store = new MemoryProjection()
  readonly source = new FaultySource(this.store)
  readonly keys = new KeyTable()
  readonly models = new KeyTable() // the follower does not depend on the content of a table
  readonly lines: string[] = []
  readonly follower: RevisionFollower
  loads = 0

  constructor() {
    const line = (...args: unknown[]): void => void this.lines.push(args.map(String).join(' '))
    this.follower = new RevisionFollower({
      source: this.source,
      tables: { ...perKind(() => new KeyTable()), key: this.keys, model: this.models },
      process: 'pod-1/abc',
      version: '1.2.3',
      clock: hurriedClock,
      log: { debug: line, info: line, warn: line, error: line },
      backends: () => ({ 'm/one': { up: 0, total: 1 } }),
      random: () => 0,
      onLoaded: () => (this.loads += 1),
    })
    running.push(this.follower)
  }

  async build(...keys: IssuedKey[]): Promise<void> {
    await this.store.rebuild(writer(), 'epoch-1', 10, keys.map(put))
  }

  async write(...changes: ProjectionChange[]): Promise<void> {
    await this.store.write(writer(), (await this.store.meta())?.epoch ?? '', changes)
  }

  async ready(): Promise<void> {
    this.follower.start()
    await waitFor('the first load', () => this.follower.loadedFrom === 'Redis')
  }

  state({ credential }: IssuedKey): string {
    return this.keys.find(credential)?.record.state ?? 'unknown'
  }
}

/** A gateway that has loaded the key `a`. */
async function following(): Promise<{ readonly world: World; readonly a: IssuedKey }> {
  const [world, a] = [new World(), issuedKey('a')]
  await world.build(a)
  await world.ready()
  return { world, a }
}

const put = ({ record }: IssuedKey): ProjectionChange => ({ kind: 'key', op: 'put', id: record.uid, text: recordText(record) })
const suspend = ({ record }: IssuedKey): ProjectionChange => ({
  ...put({ record } as IssuedKey),
  text: recordText(record, { state: 'Suspended' }),
})
const del = ({ record }: IssuedKey): ProjectionChange => ({ kind: 'key', op: 'del', id: record.uid })

describe('a gateway that starts', () => {
  test('is ready once it knows every key, and says so at once', async () => {
    const world = new World()
    const [a, b] = [issuedKey('a'), issuedKey('b')]
    await world.build(a, b)
    expect(world.follower.loaded).toBe(false)
    await world.ready()
    expect([world.state(a), world.state(b)]).toEqual(['Active', 'Active'])
    await eventually(() =>
      expect(world.source.beats.at(-1)).toMatchObject({ epoch: 'epoch-1', revision: 10, source: 'Redis', ready: true, version: '1.2.3' }),
    )
    expect(world.source.beats[0]).toMatchObject({ source: 'None', ready: false })
    expect(world.source.beats.at(-1)?.backends).toEqual({ 'm/one': { up: 0, total: 1 } })
  })

  test('takes in what changes while it loads', async () => {
    const world = new World()
    const [a, b] = [issuedKey('a'), issuedKey('b')]
    await world.build(a)
    world.source.beforeScan = () => world.write(suspend(a), put(b))
    await world.ready()
    expect([world.state(a), world.state(b)]).toEqual(['Suspended', 'Active'])
  })

  test('skips changes of kinds that only a newer build knows, then and later, and applies the revocation behind them', async () => {
    const world = new World()
    const [a, b] = [issuedKey('a'), issuedKey('b')]
    const unknown: ProjectionChange = { kind: 'unknown' as RecordKind, op: 'put', id: 'u', text: '{"v":9,"rev":0}' }
    await world.build(a, b)
    world.source.beforeScan = () => world.write(unknown, suspend(a))
    await world.ready()
    expect(world.state(a)).toBe('Suspended')
    await world.write({ ...unknown, id: 'w' }, suspend(b))
    await waitFor('the revocation', () => world.state(b) === 'Suspended')
    expect([world.loads, world.follower.unreadableRecords]).toEqual([1, 0])
  })

  test('begins again when the data set is replaced while it loads, and never serves a half of each', async () => {
    const world = new World()
    const [old, fresh] = [issuedKey('old'), issuedKey('fresh')]
    await world.build(old)
    world.source.beforeScan = async () => {
      world.source.beforeScan = () => Promise.resolve()
      await world.store.rebuild(writer(), 'epoch-2', 20, [put(fresh)])
    }
    await world.ready()
    expect([world.state(old), world.state(fresh)]).toEqual(['unknown', 'Active'])
    expect(world.follower.position).toEqual({ epoch: 'epoch-2', revision: 20 })
  })

  test('waits for a projection, names the remedy, and needs no restart', async () => {
    const world = new World()
    world.follower.start()
    await eventually(() => expect(world.lines.join()).toMatch(/the projection is empty: .* check that the operator runs/))
    expect(world.follower.loaded).toBe(false)
    await world.build(issuedKey('a'))
    await eventually(() => expect(world.follower.loaded).toBe(true))
  })

  test('ends only for errors that a restart cannot fix', async () => {
    const world = new World()
    world.source.meta = () => Promise.reject(new Misconfigured('REDIS_URL: evicts; set noeviction'))
    world.follower.start()
    await expect(world.follower.failed).rejects.toThrow('set noeviction')
  })
})

describe('a gateway that starts among records of another version', () => {
  const unreadable = (key: IssuedKey): ProjectionChange => ({ ...put(key), text: recordText(key.record).replace('"v":1', '"v":2') })

  async function started(...changes: ProjectionChange[]): Promise<World> {
    const world = new World()
    await world.store.rebuild(writer(), 'epoch-1', 10, changes)
    await world.ready()
    return world
  }

  test('logs the problem, serves the readable records, and is ready once all are written in a version that it reads', async () => {
    const [a, b] = [issuedKey('a'), issuedKey('b')]
    const world = await started(put(a), unreadable(b))
    await eventually(() =>
      expect(world.source.beats.at(-1)).toMatchObject({ source: 'Redis', ready: false, unreadable: ['b'], schemas: [1] }),
    )
    expect([world.state(a), world.follower.ready, world.follower.lacksKeys]).toEqual(['Active', false, true])
    await world.write(put(b))
    await eventually(() => expect(world.source.beats.at(-1)).toMatchObject({ ready: true, unreadable: [] }))
    expect([world.state(b), world.follower.ready, world.follower.lacksKeys]).toEqual(['Active', true, false])
  })

  test('is ready once they are deleted', async () => {
    const b = issuedKey('b')
    const world = await started(unreadable(b))
    await world.write(del(b))
    await eventually(() => expect([world.follower.ready, world.follower.lacksKeys]).toEqual([true, false]))
  })

  test('is ready after 30 s without them, and still knows that keys are lacking', async () => {
    const startedAt = hurriedClock.monotonic()
    const world = await started(unreadable(issuedKey('b')))
    await eventually(() => expect(world.follower.ready).toBe(true))
    expect(hurriedClock.monotonic() - startedAt).toBeGreaterThanOrEqual(30_000)
    expect(world.follower.lacksKeys).toBe(true)
  })

  test('waits as well when the mounted keyring, which it starts from, has entries of another version', async () => {
    const world = new World()
    world.source.down = true
    world.follower.start()
    world.follower.startedFromKeyring(true)
    expect([world.follower.loaded, world.follower.ready, world.follower.lacksKeys]).toEqual([true, false, true])
    world.follower.startedFromKeyring(false)
    expect([world.follower.ready, world.follower.lacksKeys]).toEqual([true, false])
  })

  test('stays ready when such a record comes later', async () => {
    const world = await started()
    await world.write(unreadable(issuedKey('b')))
    await eventually(() => expect(world.follower.lacksKeys).toBe(true))
    expect(world.follower.ready).toBe(true)
  })

  test('says it in one line, however many they are', async () => {
    const world = await started(...Array.from({ length: 200 }, (_, index) => unreadable(issuedKey(`k${index}`))))
    expect(world.lines.filter((line) => line.includes('cannot be read by this version'))).toHaveLength(1)
  })
})

describe('a gateway that follows', () => {
  test('applies each change and acknowledges its revision', async () => {
    const world = new World()
    const a = issuedKey('a')
    await world.build()
    await world.ready()
    for (const [change, state] of [
      [put(a), 'Active'],
      [suspend(a), 'Suspended'],
      [del(a), 'unknown'],
    ] as const) {
      await world.write(change)
      await eventually(() => expect(world.state(a)).toBe(state))
    }
    await eventually(() => expect(world.source.beats.at(-1)?.revision).toBe(13))
    expect(world.loads).toBe(1)
  })

  test('keeps the last good record of a key that it cannot read, and names it, until there is one that it can', async () => {
    const { world, a } = await following()
    await world.write({ ...put(a), text: '{"v":2,"rev":0}' })
    await eventually(() => expect(world.source.beats.at(-1)).toMatchObject({ revision: 11, unreadable: ['a'] }))
    expect(world.state(a)).toBe('Active')
    await world.write(suspend(a))
    await eventually(() => expect(world.source.beats.at(-1)).toMatchObject({ revision: 12, unreadable: [] }))
  })

  test('forgets a key whose record needs a feature that it lacks, and then says of no unknown Credential that it is invalid', async () => {
    const { world, a } = await following()
    await world.write({ ...put(a), text: '{"v":1,"needs":["of a later version"],"rev":0,"uid":"a"}' })
    await eventually(() => expect(world.source.beats.at(-1)).toMatchObject({ revision: 11, unreadable: ['a'] }))
    expect([world.state(a), world.follower.lacksKeys, world.follower.ready]).toEqual(['unknown', true, true])
    await world.write(put(a))
    await eventually(() => expect([world.state(a), world.follower.lacksKeys]).toEqual(['Active', false]))
  })

  test('loads everything again when the log has a gap', async () => {
    const { world, a } = await following()
    world.source.trimmedBelow = 12
    await world.write(suspend(a), put(issuedKey('b')))
    await eventually(() => expect(world.state(a)).toBe('Suspended'))
    expect(world.loads).toBe(2)
  })

  test('loads everything again when entries that meta announces never arrive', async () => {
    const { world, a } = await following()
    world.source.trimmedBelow = 1_000
    await world.write(suspend(a))
    await eventually(() => expect(world.state(a)).toBe('Suspended'))
  })

  test('loads everything again under a new epoch, and keys that are not in it go', async () => {
    const { world, a } = await following()
    const b = issuedKey('b')
    await world.store.rebuild(writer(), 'epoch-2', 11, [put(b)])
    await eventually(() => expect(world.state(b)).toBe('Active'))
    expect(world.state(a)).toBe('unknown')
    expect(world.follower.position).toEqual({ epoch: 'epoch-2', revision: 11 })
  })
})

describe('a gateway whose store is emptied between the log and the records', () => {
  test('takes no key for deleted', async () => {
    const { world, a } = await following()
    const records = world.source.records.bind(world.source)
    world.source.records = () => {
      world.source.meta_ = 'none'
      return Promise.resolve(new Map())
    }
    await world.write(suspend(a))
    await eventually(() => expect(world.lines.join()).toContain('the data set changed while records of it were fetched'))
    expect(world.state(a)).toBe('Active')
    world.source.records = records
    world.source.meta_ = undefined
    await eventually(() => expect(world.state(a)).toBe('Suspended'))
  })
})

describe('a gateway whose store fails', () => {
  test('serves its records and continues from its revision, without another load', async () => {
    const { world, a } = await following()
    const b = issuedKey('b')
    world.source.down = true
    await eventually(() => expect(world.lines.join()).toContain('the store is away; start it'))
    expect(world.state(a)).toBe('Active')
    expect(world.follower.loaded).toBe(true)
    await world.write(put(b))
    world.source.down = false
    await eventually(() => expect(world.state(b)).toBe('Active'))
    expect(world.loads).toBe(1)
    expect(world.lines.join()).toMatch(/works again after/)
  })

  test('reports for how long it may have missed changes', async () => {
    const { world } = await following()
    await eventually(() => expect(world.follower.unreadForMs).toBeLessThan(5_000))
    world.source.down = true
    await eventually(() => expect(world.follower.unreadForMs).toBeGreaterThan(5_000))
    world.source.down = false
    await eventually(() => expect(world.follower.unreadForMs).toBeLessThan(5_000))
  })

  test('keeps its table over an emptied store, counts as behind, and takes the rebuilt one', async () => {
    const { world, a } = await following()
    world.source.meta_ = 'none'
    await eventually(() => expect(world.follower.unreadForMs).toBeGreaterThan(5_000))
    expect(world.state(a)).toBe('Active')
    world.source.meta_ = undefined
    await world.store.rebuild(writer(), 'epoch-2', 12, [suspend(a)])
    await eventually(() => expect(world.state(a)).toBe('Suspended'))
  })

  test('revives no revoked key when the store goes back to older data of the same epoch', async () => {
    const { world, a } = await following()
    await world.write(del(a))
    await eventually(() => expect(world.state(a)).toBe('unknown'))
    await world.store.rebuild(writer(), 'epoch-1', 10, [put(a)]) // a replica that never saw the deletion became primary
    await eventually(() => expect(world.lines.join()).toContain('went back to revision 10'))
    await eventually(() => expect(world.follower.unreadForMs).toBeGreaterThan(5_000))
    expect(world.state(a)).toBe('unknown')
    await world.store.rebuild(writer(), 'epoch-2', 12, [])
    await eventually(() => expect(world.follower.position?.epoch).toBe('epoch-2'))
    expect(world.state(a)).toBe('unknown')
  })

  test('goes on serving even if the store turns out to be unusable', async () => {
    const { world, a } = await following()
    world.source.meta = () => Promise.reject(new Misconfigured('REDIS_URL: evicts; set noeviction'))
    await eventually(() => expect(world.lines.join()).toContain('set noeviction'))
    expect(world.state(a)).toBe('Active')
  })
})

describe('a gateway that shuts down', () => {
  test('says first that it takes nothing new, then leaves the live ones', async () => {
    const { world } = await following()
    world.follower.drain()
    await eventually(() => expect(world.source.beats.at(-1)?.ready).toBe(false))
    await world.follower.stop()
    expect(world.source.left).toEqual(['pod-1/abc'])
  })

  test('does so while the store is away too', async () => {
    const world = new World()
    world.source.down = true
    world.follower.start()
    await world.follower.stop()
    expect(world.follower.loaded).toBe(false)
  })
})
