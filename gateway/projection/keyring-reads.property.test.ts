import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeyringFolder } from '../../test/support/keyring-folder.ts'
import { issuedKey, keyringEntry, recordText } from '../../test/support/records.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { type KeyringEntry, writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { KeyTable } from '../auth/key-table.ts'
import { KeyringFiles } from './keyring-files.ts'

/** `SEED=… make property` repeats a run. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const KEYS = ['a', 'b', 'c', 'd']

/** A change of the keyring, of the records in Redis, which may lag behind it, or of the folder, which may lag too. */
const step = fc.record({
  do: fc.constantFrom('edit', 'edit', 'log', 'log', 'publish', 'publish', 'delete', 'forget'),
  key: fc.nat({ max: KEYS.length - 1 }),
  state: fc.constantFrom<KeyRecord['state']>('Active', 'Suspended', 'Revoked'),
  behind: fc.nat({ max: 3 }),
})

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** A key with all records that it ever had, and the number of the newest one in Redis. */
class Key {
  readonly credential: string
  readonly records: KeyRecord[]
  logged = -1
  deletedMs: number | null = null
  /** Whether its tombstone is over. */
  isForgotten = false

  constructor(uid: string) {
    const { credential, record } = issuedKey(uid)
    this.credential = credential
    this.records = [record]
  }

  get newest(): KeyRecord {
    return this.records.at(-1) as KeyRecord
  }

  get entry(): KeyringEntry {
    return keyringEntry(this.newest, { deletedMs: this.deletedMs })
  }
}

/** Two pods over one folder, of which the second unpacks every file each time. */
class World {
  readonly #folder = new KeyringFolder()
  readonly #keys = KEYS.map((uid) => new Key(uid))
  readonly #pods = [false, true].map((isWhole) => ({ isWhole, table: new KeyTable(), files: new KeyringFiles(this.#folder.path) }))
  #revision = 0

  constructor() {
    for (const { table } of this.#pods) table.load().commit()
  }

  async take({ do: what, key: at, state, behind }: Step): Promise<void> {
    const key = this.#keys[at] as Key
    const isOver = key.newest.state === 'Revoked' || key.deletedMs !== null
    if (what === 'edit' && !isOver) key.records.push({ ...key.newest, generation: key.newest.generation + 1, state })
    else if (what === 'delete') key.deletedMs = 1
    else if (what === 'forget' && key.deletedMs !== null) key.isForgotten = true
    else if (what === 'log') this.#log(key, behind)
    else if (what === 'publish') await this.#publish()
  }

  /** What each pod says about every value. */
  get answers(): readonly unknown[] {
    return this.#pods.map(({ table }) =>
      this.#keys.map(({ credential }) => [table.find(credential)?.record.state, table.tombstone(credential) !== undefined]),
    )
  }

  remove(): void {
    this.#folder.remove()
  }

  #log(key: Key, behind: number): void {
    const { uid } = key.newest
    key.logged = Math.max(key.logged, key.records.length - 1 - behind, 0)
    const text = recordText(key.records[key.logged] as KeyRecord, { revision: ++this.#revision })
    for (const { table } of this.#pods)
      if (key.deletedMs === null) table.put(uid, text)
      else table.delete(uid)
  }

  async #publish(): Promise<void> {
    this.#folder.publish({ 'keyring/2-0': this.#shard(0), 'keyring/2-1': this.#shard(1) })
    for (const { isWhole, table, files } of this.#pods)
      table.override((await files.read(isWhole ? undefined : (entry) => table.isNeeded(entry))).entries ?? [])
  }

  #shard(shard: number): Buffer {
    const keys = this.#keys.filter(({ isForgotten }, index) => index % 2 === shard && !isForgotten)
    return gzipSync([`{"v":1,"shards":2,"shard":${shard}}`, ...keys.map(({ entry }) => writeKeyringEntry(entry))].join('\n'))
  }
}

test(`a pod that unpacks changed files alone refuses and admits what one that unpacks all of them does (SEED=${SEED})`, async () => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const world = new World()
    for (const one of steps) {
      await world.take(one)
      const [changed, whole] = world.answers
      expect(changed).toEqual(whole)
    }
    world.remove()
  })
  await fc.assert(property, { seed: SEED, numRuns: 500 })
})
