import { afterEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { issuedKey, keyringEntry, modelText, recordText, type IssuedKey } from '../../test/support/records.ts'
import { eventually } from '../../test/support/wait-for.ts'
import type { Acknowledgement } from '#contract/records/revision-log.ts'
import { KeyTable } from '../auth/key-table.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { KeyringContent } from './keyring-files.ts'
import { KeyringWatch } from './keyring-watch.ts'
import { BackendCredentials } from '../upstream/backend-credentials.ts'
import { decodeAccountRecord } from '#contract/records/account-record.ts'
import { decodePlanRecord } from '#contract/records/plan-record.ts'
import { RecordMap } from '../auth/record-map.ts'

const running: KeyringWatch[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((watch) => watch.stop()))
})

/** A folder whose content a test sets, a follower whose state it sets, and a stopped clock. */
class World {
  readonly clock = new ManualClock()
  readonly keys = new KeyTable()
  readonly models = new KeyTable()
  readonly accounts = new RecordMap(decodeAccountRecord)
  readonly plans = new RecordMap(decodePlanRecord)
  readonly lines: string[] = []
  readonly log = { debug: this.line(), info: this.line(), warn: this.line(), error: this.line() }
  readonly credentials = new BackendCredentials(this.log)
  readonly follower = {
    loadedFrom: 'None' as Acknowledgement['source'],
    lacksKeys: false,
    startedFromKeyring: (lacksKeys: boolean): void => {
      Object.assign(this.follower, { loadedFrom: 'Keyring', lacksKeys })
    },
  }
  reads = 0
  /** Number of readings that fail. */
  failures = 0
  /** Of each reading, whether it was of all entries. */
  readonly whole: boolean[] = []
  #content: KeyringContent = {
    entries: undefined,
    models: undefined,
    accounts: [],
    credentials: new Map(),
    unreadable: 0,
    isPartial: false,
    problems: [],
  }
  #generation = 0
  readonly watch: KeyringWatch

  constructor(coldStart = true) {
    const files = {
      signature: () => Promise.resolve(String(this.#generation)),
      read: (isNeeded?: (entry: KeyringEntry) => boolean) => {
        this.reads += 1
        this.whole.push(isNeeded === undefined)
        if (this.failures-- > 0) return Promise.reject(Object.assign(new Error('too many open files'), { code: 'EMFILE' }))
        return Promise.resolve(this.#content)
      },
    }
    const { keys, models, accounts, plans, credentials, follower, clock, log } = this
    this.watch = new KeyringWatch({ files, keys, models, accounts, plans, credentials, follower, coldStart, clock, log })
    running.push(this.watch)
  }

  publish(content: Partial<KeyringContent>): void {
    this.#content = { ...this.#content, ...content }
    this.#generation += 1
  }

  set content(content: Partial<KeyringContent>) {
    this.#content = { ...this.#content, ...content }
  }

  async startedFor(ms: number): Promise<void> {
    await this.watch.start()
    await this.clock.advance(ms)
  }

  state({ credential }: IssuedKey): string {
    return this.keys.find(credential)?.record.state ?? 'unknown'
  }

  /** The projection arrives. */
  loaded(...keys: IssuedKey[]): void {
    const load = this.keys.load()
    for (const { record } of keys) load.put(record.uid, recordText(record))
    load.commit()
    this.follower.loadedFrom = 'Redis'
    this.watch.reapply()
  }

  line() {
    return (...args: unknown[]): void =>
      void this.lines.push(args.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' '))
  }
}

const MODELS = [modelText('m')]

describe('a pod that finds no projection', () => {
  test('serves from the mounted keyring after 5 s, and not earlier', async () => {
    const world = new World()
    const a = issuedKey('a')
    world.publish({ entries: [keyringEntry(a.record)], models: MODELS })
    await world.startedFor(4_900)
    expect(world.follower.loadedFrom).toBe('None')
    await world.clock.advance(200)
    expect(world.follower.loadedFrom).toBe('Keyring')
    expect(world.state(a)).toBe('Active')
    expect(world.lines.join()).toContain('serving from the mounted keyring')
  })

  test('starts as soon as the files come, if they come later', async () => {
    const world = new World()
    await world.startedFor(20_000)
    expect(world.follower.loadedFrom).toBe('None')
    world.publish({ entries: [keyringEntry(issuedKey('a').record)], models: MODELS })
    await world.clock.advance(2_000)
    expect(world.follower.loadedFrom).toBe('Keyring')
  })

  test('says whether the files have entries that it could not read, as long as it serves from them', async () => {
    const world = new World()
    world.publish({ entries: [keyringEntry(issuedKey('a').record)], models: MODELS, unreadable: 3 })
    await world.startedFor(6_000)
    expect(world.follower).toMatchObject({ loadedFrom: 'Keyring', lacksKeys: true })
    world.publish({ unreadable: 0 })
    await world.clock.advance(2_000)
    expect(world.follower.lacksKeys).toBe(false)
  })

  test('is not ready without the models: it would answer 404 for all of them', async () => {
    const world = new World()
    world.publish({ entries: [keyringEntry(issuedKey('a').record)] })
    await world.startedFor(20_000)
    expect(world.follower.loadedFrom).toBe('None')
  })

  test('is never ready with COLD_START RequireRedis, but knows revoked keys', async () => {
    const world = new World(false)
    const a = issuedKey('a')
    world.publish({ entries: [keyringEntry({ ...a.record, state: 'Revoked' })], models: MODELS })
    await world.startedFor(60_000)
    expect(world.follower.loadedFrom).toBe('None')
    world.loaded(a)
    expect(world.state(a)).toBe('Revoked')
  })
})

describe('a pod that serves from the projection', () => {
  test('applies revocations and suspensions of the files, and adds no key from them: a lagging file would revive a deleted one', async () => {
    const world = new World()
    const [a, b, c] = [issuedKey('a'), issuedKey('b'), issuedKey('c')]
    await world.watch.start()
    world.loaded(a, b)
    world.publish({
      entries: [
        keyringEntry({ ...a.record, state: 'Revoked' }),
        keyringEntry({ ...b.record, generation: 2, state: 'Suspended' }),
        keyringEntry(c.record),
      ],
    })
    await world.clock.advance(2_000)
    expect([world.state(a), world.state(b), world.state(c)]).toEqual(['Revoked', 'Suspended', 'unknown'])
  })

  test('checks an older Redis against the files again after each full load', async () => {
    const world = new World()
    const a = issuedKey('a', { generation: 2 })
    world.publish({ entries: [keyringEntry({ ...a.record, state: 'Suspended' })] })
    await world.watch.start()
    world.loaded(a) // the same generation: the projection wins
    await world.clock.advance(10)
    expect(world.state(a)).toBe('Active')
    world.loaded({ ...a, record: { ...a.record, generation: 1 } })
    await world.clock.advance(10)
    expect(world.state(a)).toBe('Suspended')
  })

  test('reads the files only when they change', async () => {
    const world = new World()
    await world.watch.start()
    world.loaded()
    await world.clock.advance(10)
    const { reads } = world
    await world.clock.advance(60_000)
    expect(world.reads).toBe(reads)
  })

  test('reads all entries again after each full load, and else only those that the table needs', async () => {
    const world = new World()
    const a = issuedKey('a')
    await world.watch.start()
    world.publish({})
    await world.clock.advance(2_000)
    world.loaded(a)
    await world.clock.advance(10)
    world.publish({ entries: [keyringEntry({ ...a.record, state: 'Revoked' })] })
    await world.clock.advance(2_000)
    world.failures = 1
    world.loaded(a)
    await world.clock.advance(10)
    await world.clock.advance(2_000) // the first reading after the load failed
    expect(world.whole).toEqual([true, true, true, false, true, true])
    expect(world.state(a)).toBe('Revoked')
  })

  test.each(['a folder', 'a file of the folder'])('reads %s again that could not be read: it may hold a revocation', async (what) => {
    const world = new World()
    const a = issuedKey('a')
    await world.watch.start()
    world.loaded(a)
    await world.clock.advance(10)
    const entries = [keyringEntry({ ...a.record, state: 'Revoked' })]
    if (what === 'a folder') world.failures = 1
    world.publish(what === 'a folder' ? { entries } : { isPartial: true })
    await world.clock.advance(2_000)
    expect(world.state(a)).toBe('Active')
    world.content = { entries, isPartial: false } // without a change of the folder
    await world.clock.advance(12_000)
    expect(world.state(a)).toBe('Revoked')
    const { reads } = world
    await world.clock.advance(60_000)
    expect(world.reads).toBe(reads)
  })

  test('logs the error of a file once, not every two seconds', async () => {
    const world = new World()
    world.publish({ problems: ['keyring file keyring/2-0 is damaged'] })
    await world.watch.start()
    for (let i = 0; i < 3; i++) {
      world.publish({})
      await world.clock.advance(2_000)
    }
    expect(world.lines.filter((text) => text.includes('is damaged'))).toHaveLength(1)
  })
})

describe('credentials of backends', () => {
  const wanted = (sum: string, former: string | null = null) => ({ sum, former, isFor: () => true })

  test('come from the files, and the former one stays in use until the newest arrives', async () => {
    const world = new World()
    world.publish({ credentials: new Map([['aa', 'old']]) })
    await world.watch.start()
    expect(world.credentials.credential(wanted('aa'))).toBe('old')
    expect(world.credentials.credential(wanted('bb', 'aa'))).toBe('old')
    expect(world.credentials.credential(wanted('bb', 'aa'))).toBe('old')
    expect(world.lines.filter((text) => text.includes('the one before it stays in use'))).toHaveLength(1)
    world.publish({
      credentials: new Map([
        ['aa', 'old'],
        ['bb', 'new'],
      ]),
    })
    await eventually(async () => {
      await world.clock.advance(2_000)
      expect(world.credentials.credential(wanted('bb', 'aa'))).toBe('new')
    })
    expect(world.lines.join()).not.toMatch(/old"|new"/)
  })

  test('that are missing leave the backend out, and are reported by the head of their sum', () => {
    const world = new World()
    expect(world.credentials.credential(wanted('cc', 'dd'))).toBeUndefined()
    expect(world.lines.join()).toContain('upstream credential cc… is not mounted; the backends that need it are left out')
  })
})
