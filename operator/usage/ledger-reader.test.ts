import { describe, expect, test } from 'vitest'
import { countsOf } from '#contract/usage/usage-report.ts'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import { shardSecretName } from '#contract/records/mounted-folder.ts'
import type { KubeObject, ObjectRef, Resource } from '#kube/port.ts'
import type { Secret } from '#kube/resources.ts'
import type { AccountBook } from '../shards/account-book.ts'
import type { CreditEntry } from '../shards/credit-entry.ts'
import { shardOf } from '../shards/shard.ts'
import { BALANCES_SET, CREDITS_SET, USAGE_SET } from '../shards/sets.ts'
import { LedgerReader } from './ledger-reader.ts'
import type { FixedSet } from './secret-reader.ts'
import { noOpenUsage, withTaken } from './usage-book.ts'
import { UsageReader } from './usage-reader.ts'

const NAMESPACE = 'headgate'

/** The Secrets of an operator. */
class Secrets {
  readonly #objects = new Map<string, Secret>()
  #version = 0
  creditReads = 0

  async put<Entry>(set: FixedSet<Entry>, entries: readonly Entry[]): Promise<void> {
    const codec = set.codec(() => 1)
    for (let shard = 0; shard < set.shards; shard += 1) {
      const own = entries.filter((entry) => shardOf(codec.idOf(entry), set.shards) === shard)
      if (own.length === 0) continue
      const stored = own.map((entry) => ({ id: codec.idOf(entry), text: codec.write(entry, undefined), entry }))
      this.set(shardSecretName(set.set, set.shards, shard), { ...(await codec.encode({ shards: set.shards, shard }, stored)) })
    }
  }

  set(name: string, data: Readonly<Record<string, string>>): void {
    const metadata = { name, namespace: NAMESPACE, resourceVersion: String((this.#version += 1)) }
    this.#objects.set(name, { apiVersion: 'v1', kind: 'Secret', metadata, data })
  }

  remove(name: string): void {
    this.#objects.delete(name)
  }

  get<T extends KubeObject>(_: Resource<T>, { name }: ObjectRef): Promise<T | undefined> {
    if (name.startsWith('hg-credits-')) this.creditReads += 1
    return Promise.resolve(this.#objects.get(name) as unknown as T | undefined)
  }
}

function credit(id: string, account: string, amount: string): CreditEntry {
  const micros = parseSignedAmount(amount)
  if (micros === undefined) throw new RangeError(amount)
  return { id, account, micros, type: 'TopUp', time: '2026-11-20T10:00:00Z', reference: `ref-${id}` }
}
const book = (name: string, spent: Readonly<Record<string, number>>): AccountBook => ({
  name,
  owner: `uid-${name}`,
  changes: 0,
  openFrom: 0,
  closedSpend: 5n,
  spent: new Map(Object.entries(spent)),
})

async function world(): Promise<{ secrets: Secrets; reader: LedgerReader }> {
  const secrets = new Secrets()
  await secrets.put(BALANCES_SET, [book('acme', { '1:a': 7 }), book('other', {})])
  await secrets.put(
    CREDITS_SET,
    ['acme', 'other'].flatMap((account) => Array.from({ length: 40 }, (_, at) => credit(`${account}-${at}`, account, '1.5'))),
  )
  const taken = {
    state: 'rows',
    nowMs: 86_400_000,
    number: 1,
    rows: [{ day: 1, key: 'k', model: 'm', counts: countsOf({ costMicros: 7 }) }],
  } as const
  await secrets.put(USAGE_SET, [withTaken(noOpenUsage('acme'), taken, -1, () => undefined)])
  const deps = { kube: secrets, namespace: NAMESPACE }
  return { secrets, reader: new LedgerReader({ ...deps, usage: new UsageReader(deps) }) }
}

describe('the reader of ledgers', () => {
  test('finds the Credits of an account in every Secret, with its spend and its usage', async () => {
    const { reader } = await world()
    const found = await reader.read('acme')
    expect(found?.credits.map(({ id }) => id).toSorted()).toEqual(Array.from({ length: 40 }, (_, at) => `acme-${at}`).toSorted())
    expect(found?.credits.find(({ id }) => id === 'acme-7')).toEqual(credit('acme-7', 'acme', '1.5'))
    expect([found?.book.closedSpend, [...(found?.book.spent ?? [])]]).toEqual([5n, [['1:a', 7]]])
    expect([...(found?.usage.open?.days.keys() ?? [])]).toEqual([1])
  })

  test('knows that a name without books has no ledger', async () => {
    expect(await (await world()).reader.read('nobody')).toBeUndefined()
  })

  test('refuses a ledger that would lack Credits, because a Secret is damaged, and names the Secret', async () => {
    const { secrets, reader } = await world()
    const name = shardSecretName('credits', CREDITS_SET.shards, 3)
    secrets.set(name, { records: Buffer.from('no gzip').toString('base64') })
    await expect(reader.read('acme')).rejects.toThrow(`the Secret ${name} has damaged data; restore it from a backup`)
  })

  test('refuses a ledger that would lack Credits, because one Secret of the set is gone', async () => {
    const { secrets, reader } = await world()
    const name = shardSecretName('credits', CREDITS_SET.shards, 3)
    secrets.remove(name)
    await expect(reader.read('acme')).rejects.toThrow(`the Secret ${name} has been lost; restore it from a backup`)
  })

  test('reads a ledger before the first Credit of the installation', async () => {
    const { secrets, reader } = await world()
    for (let shard = 0; shard < CREDITS_SET.shards; shard += 1) secrets.remove(shardSecretName('credits', CREDITS_SET.shards, shard))
    expect((await reader.read('acme'))?.credits).toEqual([])
  })

  test('refuses a ledger whose books are damaged, which is not a name without books', async () => {
    const { secrets, reader } = await world()
    const name = shardSecretName('balances', BALANCES_SET.shards, shardOf('nobody', BALANCES_SET.shards))
    secrets.set(name, { records: Buffer.from('no gzip').toString('base64') })
    await expect(reader.read('nobody')).rejects.toThrow(`the Secret ${name} has damaged data`)
  })

  test('reads the Secrets of Credits twice for any number of questions that come while the first one is answered', async () => {
    const { secrets, reader } = await world()
    const first = reader.read('acme')
    await Promise.all([first, ...Array.from({ length: 50 }, (_, at) => reader.read(at % 2 === 0 ? 'acme' : 'other'))])
    expect(secrets.creditReads).toBeLessThanOrEqual(2 * CREDITS_SET.shards)
  })

  test('answers two questions at once, each with its own Credits', async () => {
    const { reader } = await world()
    const [acme, other] = await Promise.all(['acme', 'other'].map((account) => reader.read(account)))
    expect([acme, other].map((one) => new Set(one?.credits.map(({ account }) => account)))).toEqual([new Set(['acme']), new Set(['other'])])
  })
})
