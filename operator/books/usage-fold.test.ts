import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DAY_MS } from '#contract/ledger/ledger-layout.ts'
import { FakeLedgerStore } from '../../test/support/fake-ledger-store.ts'
import { SHOP } from '../../test/support/objects.ts'
import { OperatorWorld } from '../../test/support/operator-world.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { usageCodec, usageDaysOf } from './usage-entry.ts'

const TODAY = 20_500
const YESTERDAY = TODAY - 1
const HOURS = 3_600
const MODEL = '6f1c1f8e-0b0b-4a53-9d8e-0c7a3f1f2b11'

let world: OperatorWorld
let ledger: FakeLedgerStore

beforeEach(() => {
  world = new OperatorWorld()
  ledger = new FakeLedgerStore()
  ledger.nowMs = TODAY * DAY_MS + DAY_MS / 2
  world.ledger = ledger
})
afterEach(() => world.stop())

/** A key without budgets, unless the spec says otherwise. @returns its uid */
async function applied(spec: Partial<ApiKeySpec> = { limits: { requestsPerMinute: 1 } }, name = 'bot'): Promise<string> {
  const { metadata } = await world.applyKey(spec, name)
  await world.settle()
  return metadata.uid ?? ''
}

/** Counts requests like a gateway. */
function uses(uid: string, day: number, requests: number): void {
  const counters = { model: MODEL, requests, input: 100, output: 20, cached: 0, cost: 900, estimated: 0, unpriced: 0 }
  ledger.usageOf.set(`${uid} ${day}`, [counters])
}

async function turns(seconds: number): Promise<void> {
  for (let at = 0; at < seconds; at += 1) await world.pass(1)
}

/** Number of requests by subject and day, as stored in the Secrets. */
async function durable(): Promise<Record<string, Array<readonly [day: number, requests: number]>>> {
  const shards = await Promise.all((await world.shards('spend')).map(({ data }) => usageCodec.decode(data ?? {})))
  const entries = shards.flatMap((shard) => shard.entries.flatMap(({ entry }) => entry ?? []))
  return Object.fromEntries(
    entries.map((entry) => [entry.uid, [...usageDaysOf(entry)].map(([day, counters]) => [day, counters[0]?.requests ?? 0])]),
  )
}

/** Number of writes of the Secrets of usage. */
const usageWrites = (): string[] => world.writes.filter((write) => write.includes(' secrets hg-spend-32-'))

describe('the usage of a closed day', () => {
  test('becomes durable, even for a key without budgets; the usage of the present day does not', async () => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    uses(uid, TODAY, 4)
    await world.start()
    await turns(70)
    expect(await durable()).toEqual({ [uid]: [[YESTERDAY, 3]] })
  })

  test('is taken over within an hour after the end of the day, on the clock of Redis and not of the operator', async () => {
    await world.start()
    const uid = await applied()
    await turns(70)
    uses(uid, TODAY, 4)
    world.now += 3 * DAY_MS
    await world.pass(HOURS)
    await turns(70)
    expect(await durable()).toEqual({})
    ledger.nowMs = (TODAY + 1) * DAY_MS + 600_000
    await world.pass(HOURS)
    await turns(70)
    expect(await durable()).toEqual({ [uid]: [[TODAY, 4]] })
  })

  test('counts once after any number of restarts of the operator, and survives an emptied Redis', async () => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    await world.start()
    await turns(70)
    const before = usageWrites().length
    await world.restart()
    await turns(70)
    ledger.wipe()
    await world.restart()
    await turns(70)
    expect([await durable(), before, usageWrites().length]).toEqual([{ [uid]: [[YESTERDAY, 3]] }, 1, 1])
    uses(uid, TODAY, 4)
    ledger.nowMs += DAY_MS
    await world.pass(HOURS)
    await turns(70)
    expect(await durable()).toEqual({
      [uid]: [
        [YESTERDAY, 3],
        [TODAY, 4],
      ],
    })
  })

  test.each(['before', 'after'] as const)('counts once if the operator dies %s the write of its Secret', async (when) => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    const process = await world.start()
    let isDead = false
    world[when === 'before' ? 'beforeCall' : 'afterCall'] = ({ name }) => {
      if (isDead || !name.startsWith('hg-spend-32-')) return
      isDead = true
      process.kill()
      throw new Error('killed')
    }
    await turns(70)
    expect(isDead).toBe(true)
    await world.start()
    await turns(70)
    expect(await durable()).toEqual({ [uid]: [[YESTERDAY, 3]] })
  })

  test('is durable after a clean end of the operator, without the wait for other writes', async () => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    await world.start()
    await turns(3)
    await world.stopProcesses()
    expect(await durable()).toEqual({ [uid]: [[YESTERDAY, 3]] })
  })

  test('that cannot be written is logged, and is written as soon as writes succeed', async () => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    await world.start()
    world.beforeCall = ({ name }) => {
      if (name.startsWith('hg-spend-32-')) throw new Error('the API server refuses it')
    }
    const lines = (): number => world.logs.filter((line) => line.includes('usage of the last day is not durable')).length
    await turns(500)
    expect(lines()).toBe(0)
    await turns(150)
    expect([lines() > 0, await durable()]).toEqual([true, {}])
    world.beforeCall = () => undefined
    await turns(130)
    expect(await durable()).toEqual({ [uid]: [[YESTERDAY, 3]] })
  })

  test('is read again after an outage of Redis', async () => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    ledger.isDown = true
    await world.start()
    await turns(5)
    ledger.isDown = false
    await turns(70)
    expect(await durable()).toEqual({ [uid]: [[YESTERDAY, 3]] })
  })

  test('of many keys costs one write of each Secret, and is read from Redis in small parts', async () => {
    const uids: string[] = []
    for (let at = 0; at < 40; at += 1) uids.push((await world.applyKey({}, `bot-${at}`)).metadata.uid ?? '')
    await world.settle()
    for (const uid of uids) uses(uid, YESTERDAY, 1)
    await world.start()
    await turns(130)
    expect(Object.keys(await durable())).toHaveLength(40)
    expect(new Set(usageWrites().map((write) => write.split(' ').at(-1))).size).toBe(usageWrites().length)
    const asked = ledger.calls.filter((call) => call.startsWith('usage'))
    await world.pass(HOURS)
    await turns(3)
    expect(
      ledger.calls.filter((call) => call.startsWith('usage')),
      'what is known is not asked for again',
    ).toEqual(asked)
  })
})

describe('the usage of a deleted key', () => {
  test('is deleted with the key', async () => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    await world.start()
    await turns(70)
    expect(Object.keys(await durable())).toEqual([uid])
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await turns(130)
    expect(await durable()).toEqual({})
  })

  test('is deleted even if the operator dies before the write of the Secret', async () => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    const process = await world.start()
    await turns(70)
    let isDead = false
    world.beforeCall = ({ name }) => {
      if (isDead || !name.startsWith('hg-spend-32-')) return
      isDead = true
      process.kill()
      throw new Error('killed')
    }
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await turns(70)
    expect([isDead, Object.keys(await durable())]).toEqual([true, [uid]])
    await world.start()
    await turns(130)
    expect(await durable()).toEqual({})
  })

  test('is deleted even if the key was deleted while no operator ran', async () => {
    const uid = await applied()
    uses(uid, YESTERDAY, 3)
    await world.start()
    await turns(70)
    expect(Object.keys(await durable())).toEqual([uid])
    await world.stopProcesses()
    const key = await world.key()
    await world.objects.update(apiKeys, { ...key, metadata: { ...key.metadata, finalizers: [] } })
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await world.start()
    await turns(130)
    expect(await durable()).toEqual({})
  })
})
