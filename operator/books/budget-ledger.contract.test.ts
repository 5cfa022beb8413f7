import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FakeLedgerStore } from '../../test/support/fake-ledger-store.ts'
import { SHOP } from '../../test/support/objects.ts'
import { OperatorWorld } from '../../test/support/operator-world.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { refOf } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { spendCodec } from '../shards/spend-entry.ts'

type Budget = NonNullable<ApiKeySpec['budgets']>[number]

const MONTH: Budget = { name: 'month', amount: '25', unit: 'Currency', window: 'Month', timeZone: 'UTC', onExceeded: 'Block' }
const EVER: Budget = { ...MONTH, name: 'ever', window: 'Lifetime' }
const EVER_FIELD = 'ever:Currency:Lifetime:0'
const FIELD = `month:Currency:Month:${Date.UTC(2026, 0, 1)}`
const MICROS = 1_000_000

let world: OperatorWorld
let ledger: FakeLedgerStore
/** How far the wall clock of the leader is ahead of the clock of the store. */
let aheadMs: number

beforeEach(() => {
  world = new OperatorWorld()
  aheadMs = 0
  ledger = new FakeLedgerStore(() => world.now - aheadMs)
  world.ledger = ledger
})
afterEach(() => world.stop())

const uidOf = async (name = 'bot'): Promise<string> => (await world.key(name)).metadata.uid ?? ''
const limits = (name = 'bot') => world.condition(apiKeys, name, 'LimitsEnforceable')
const lossEvents = () => world.events.filter(({ reason }) => reason === 'SpendUncertain').length

async function applied(spec: Partial<ApiKeySpec> = { budgets: [MONTH] }, name = 'bot'): Promise<string> {
  await world.settledKey(spec, name)
  return await uidOf(name)
}

/** The spend in the Secrets, by subject and window. */
async function durable(): Promise<Record<string, Record<string, number>>> {
  const shards = await Promise.all((await world.shards('spend')).map(({ data }) => spendCodec.decode(data ?? {})))
  const entries = shards.flatMap((shard) => shard.entries.flatMap(({ entry }) => entry ?? []))
  return Object.fromEntries(entries.map(({ uid, spent }) => [uid, Object.fromEntries(spent)]))
}

/** Advances the time in steps of a turn. */
async function turns(seconds: number): Promise<void> {
  for (let at = 0; at < seconds; at += 1) await world.pass(1)
}

/** The uid of a key of a started operator, whose spend is durable. */
async function spentKey(amount: number): Promise<string> {
  await world.start()
  const uid = await applied()
  ledger.spend(uid, FIELD, amount * MICROS)
  await turns(10)
  return uid
}

/** The uid of a key of a started operator: both budgets have spent, `EVER` was removed, and the ledger has forgotten it. */
async function forgotten(): Promise<string> {
  await world.start()
  const uid = await applied({ budgets: [MONTH, EVER] })
  ledger.spend(uid, FIELD, 3 * MICROS)
  ledger.spend(uid, EVER_FIELD, 5 * MICROS)
  await turns(10)
  await applied({ budgets: [MONTH] })
  await turns(10)
  await ledger.forget([{ subject: uid, fields: [EVER_FIELD] }])
  return uid
}

/** Advances the time until the budgets of a key were read again. */
async function untilRead(uid: string): Promise<void> {
  const reads = (): number => ledger.calls.filter((call) => call === `read ${uid}`).length
  for (const before = reads(); reads() === before;) await turns(1)
}

/** Does the same as FLUSHALL: functions stay. */
function emptyRedis(): void {
  world.memory = new MemoryProjection({ now: () => world.now })
  ledger.wipe()
}

describe('a budget', () => {
  test('has a seed before any gateway gets its key, and a key without budgets needs no seed', async () => {
    const seededFirst: boolean[] = []
    world.beforeCall = async ({ verb }) => {
      if (verb !== 'write') return
      const known = await Promise.allSettled([uidOf()])
      const uid = known[0].status === 'fulfilled' ? known[0].value : ''
      if ((await world.texts('key')).length === 0 && uid !== '') seededFirst.push(ledger.budgets.has(uid))
    }
    await world.start()
    await applied()
    expect(seededFirst.at(-1)).toBe(true)
    world.beforeCall = () => undefined
    const free = await applied({ limits: { requestsPerMinute: 1 } }, 'free')
    expect(ledger.budgets.has(free)).toBe(false)
  })

  test('that is added later starts at 0 and needs no other seed', async () => {
    await world.start()
    const uid = await applied()
    ledger.spend(uid, FIELD, 5 * MICROS)
    await applied({ budgets: [MONTH, { ...MONTH, name: 'more' }] })
    expect(ledger.window(uid, FIELD).spent).toBe(5 * MICROS)
    expect(await limits()).toBe('True Enforceable')
  })

  test('without use causes no writes, neither while the operator runs nor after a restart', async () => {
    const uid = await spentKey(5)
    await world.settle()
    const before = world.writes.length
    await turns(60)
    await world.restart()
    await turns(60)
    expect(world.writes.slice(before)).toEqual([])
    expect(ledger.window(uid, FIELD).spent).toBe(5 * MICROS)
  })

  test('that is spent all the time, by any number of keys, costs one write of each Secret in three seconds', async () => {
    await world.start()
    const uids: string[] = []
    for (let at = 0; at < 24; at += 1) {
      uids.push((await world.applyKey({ budgets: [MONTH] }, `bot-${at}`)).metadata.uid ?? '')
      await turns(1) // each key is read at another time
    }
    const before = world.writes.length
    for (let at = 1; at <= 40; at += 1) {
      for (const uid of uids) ledger.spend(uid, FIELD, at * 1_000)
      await turns(1)
    }
    const writes = world.writes.slice(before).filter((write) => write.includes(' secrets hg-spend-'))
    const counts = [...Map.groupBy(writes, (write) => write.split(' ').at(-1))].map(([, some]) => some.length)
    expect(counts).toHaveLength(8)
    expect(Math.max(...counts)).toBeLessThanOrEqual(14)
    expect(Math.min(...counts)).toBeGreaterThan(8)
  })

  test('that cannot be made durable is logged at most once a minute, and is written as soon as writes succeed', async () => {
    await world.start()
    const uid = await applied()
    world.beforeCall = ({ plural, name }) => {
      if (plural === 'secrets' && name.startsWith('hg-spend-')) throw new Error('the API server is away')
    }
    ledger.spend(uid, FIELD, 5 * MICROS)
    await turns(120)
    const lines = world.logs.filter((line) => line.includes('spend of budgets has not become durable'))
    expect([lines.length > 0, lines.length < 10, await durable()]).toEqual([true, true, {}])
    world.beforeCall = () => undefined
    await turns(10)
    expect(await durable()).toEqual({ [uid]: { [FIELD]: 5 * MICROS } })
  })

  test('that is used up is reported at once, and starts again at 0 with the next window', async () => {
    await spentKey(25)
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('False BudgetExhausted')
    world.now = Date.UTC(2026, 1, 1, 0, 1)
    await turns(10)
    await world.pass(60)
    await world.settle()
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('True Ready')
    expect((await world.key()).status?.usage).toMatchObject([{ windowStartTime: '2026-02-01T00:00:00Z', used: '0.00' }])
  })
})

describe('the memory of a deleted key', () => {
  const THREE_DAYS = 3 * 86_400_000
  const lead = async (byMs: number): Promise<void> => {
    world.now += byMs - aheadMs
    aheadMs = byMs
    await world.restart()
    await turns(2)
  }

  test.each([
    ['another leader, whose clock is three days ahead, took over', 0, THREE_DAYS],
    ['the clock of the leader that deleted the key was three days behind', -THREE_DAYS, 0],
  ])('lasts a day although %s', async (_case, formerMs, latterMs) => {
    await lead(formerMs)
    await applied()
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await turns(10)
    await lead(latterMs)
    await world.pass(700)
    await turns(10)
    expect(await world.keyringEntries()).toMatchObject([{ state: 'Revoked', deletedMs: expect.any(Number) }])
    await world.pass(90_000)
    await turns(10)
    expect(await world.keyringEntries()).toEqual([])
  })
})

describe('the spend of a day', () => {
  const DAY: Budget = { ...MONTH, name: 'day', window: 'Day' }
  const TODAY = `day:Currency:Day:${Date.UTC(2026, 0, 1)}`

  test('stays in Redis and in the Secrets, whatever a leader takes for today for half a minute', async () => {
    await world.start()
    const uid = await applied({ budgets: [DAY] })
    ledger.spend(uid, TODAY, 7 * MICROS)
    await turns(10)
    aheadMs = 3 * 86_400_000
    world.now += aheadMs
    await world.restart()
    await turns(30)
    const during = (await world.key()).status?.usage
    world.now -= aheadMs
    aheadMs = 0
    await world.restart()
    await turns(70)
    expect([ledger.window(uid, TODAY).spent, await durable()]).toEqual([7 * MICROS, { [uid]: { [TODAY]: 7 * MICROS } }])
    const shown = { windowStartTime: '2026-01-01T00:00:00Z', used: '7.00' }
    expect([during, (await world.key()).status?.usage]).toMatchObject([[shown], [shown]])
    expect(lossEvents()).toBe(0)
  })
})

describe('after Redis was emptied', () => {
  test('the condition survives a restart without a write, and ends after a day', async () => {
    await spentKey(20)
    ledger.wipe()
    await turns(10)
    await world.settle()
    const before = world.writes.length
    await world.restart()
    await turns(10)
    expect([await limits(), world.writes.slice(before)]).toEqual(['False SpendUncertain', []])
    await world.pass(86_400)
    await world.pass(1_000)
    await world.settle()
    expect(await limits()).toBe('True Enforceable')
    expect(lossEvents()).toBe(1)
  })

  test('and replaced by a Redis without functions, the functions are loaded first', async () => {
    const uid = await spentKey(20)
    const spent: number[] = []
    world.beforeCall = ({ verb }) => {
      if (verb === 'meta') ledger.isLoaded = false // at the time of the rebuild the functions are missing again
      if (verb === 'rebuild') spent.push(ledger.window(uid, FIELD).spent)
    }
    emptyRedis()
    await turns(6)
    expect(spent).toEqual([20 * MICROS])
  })

  test('while no operator ran, the next operator seeds from the Secrets before the first projection', async () => {
    const uid = await spentKey(20)
    await world.stopProcesses()
    emptyRedis()
    const spent: number[] = []
    world.afterCall = ({ verb }) => void (verb === 'rebuild' && spent.push(ledger.window(uid, FIELD).spent))
    await world.start()
    expect(spent).toEqual([20 * MICROS])
  })
})

describe('a forged spend', () => {
  test('below the checkpoint is restored within ten seconds, even if no gateway has named the key', async () => {
    const uid = await spentKey(20)
    ledger.spend(uid, FIELD, 0)
    ledger.named.clear()
    await turns(10)
    expect(ledger.window(uid, FIELD).spent).toBe(20 * MICROS)
    await world.settle()
    expect([await limits(), lossEvents()]).toEqual(['False SpendUncertain', 1])
  })

  test('above what calls can have caused is not made durable; condition and Event name the budget, and another name for it starts at zero', async () => {
    const uid = await spentKey(20)
    ledger.spend(uid, FIELD, 9_000_000_000_000_000)
    await turns(10)
    await world.settle()
    expect([await durable(), await limits()]).toEqual([{ [uid]: { [FIELD]: 20 * MICROS } }, 'False SpendHeldBack'])
    expect(world.events.filter(({ reason }) => reason === 'SpendHeldBack').map(({ note }) => note)).toEqual([
      expect.stringContaining('budget month'),
    ])
    await world.restart()
    await turns(10)
    expect([await durable(), await limits()]).toEqual([{ [uid]: { [FIELD]: 20 * MICROS } }, 'False SpendHeldBack'])
    await applied({ budgets: [{ ...MONTH, name: 'month-2', amount: '5' }] })
    await turns(10)
    await world.settle()
    expect(await limits()).toBe('True Enforceable')
  })

  test('above its amount, as a running call without a bound may cause it, is believed; so is the spend of a budget that only audits', async () => {
    await world.start()
    const uid = await applied({ budgets: [MONTH] })
    ledger.spend(uid, FIELD, 25 * 200 * MICROS)
    const audits = await applied({ budgets: [{ ...MONTH, onExceeded: 'Audit' }] }, 'audits')
    ledger.spend(audits, FIELD, 1_000_000 * MICROS)
    await turns(10)
    expect(await durable()).toEqual({ [uid]: { [FIELD]: 5_000 * MICROS }, [audits]: { [FIELD]: 1_000_000 * MICROS } })
  })

  test('is measured by the highest amount that the budget had: running calls may have begun under it', async () => {
    const uid = await spentKey(20)
    await applied({ budgets: [{ ...MONTH, amount: '0.01' }] })
    ledger.spend(uid, FIELD, 40 * MICROS)
    await turns(10)
    expect([await durable(), await limits()]).toEqual([{ [uid]: { [FIELD]: 40 * MICROS } }, 'True Enforceable'])
  })

  test('gets a new seed at once, so that no process reports its spend twice, however late it reports', async () => {
    await world.start()
    const uid = await applied()
    ledger.spend(uid, FIELD, 20 * MICROS)
    await turns(10)
    ledger.spend(uid, FIELD, 15 * MICROS)
    const seeds = (): number => ledger.calls.filter((call) => call === `seed ${uid}`).length
    const before = seeds()
    await untilRead(uid)
    await turns(1)
    expect([ledger.window(uid, FIELD).spent, seeds()]).toEqual([20 * MICROS, before + 1])
    await turns(10)
    expect(seeds()).toBe(before + 1)
  })

  test('L7 after a return of Redis to older data is corrected before the projection is rebuilt', async () => {
    await world.start()
    const uid = await applied()
    ledger.spend(uid, FIELD, 20 * MICROS)
    await turns(10)
    await untilRead(uid)
    ledger.spend(uid, FIELD, 15 * MICROS)
    ledger.named.clear()
    world.memory = new MemoryProjection({ now: () => world.now })
    const spent: number[] = []
    world.beforeCall = ({ verb }) => void (verb === 'rebuild' && spent.push(ledger.window(uid, FIELD).spent))
    await turns(5)
    expect(spent).toEqual([20 * MICROS])
  })

  test('of a budget that was removed, and that the ledger has forgotten, is no loss for the other budgets of the key', async () => {
    await world.start()
    const life: Budget = { name: 'life', amount: '9', unit: 'Currency', window: 'Lifetime', timeZone: 'UTC', onExceeded: 'Block' }
    const uid = await applied({ budgets: [MONTH, life] })
    ledger.spend(uid, FIELD, 20 * MICROS)
    ledger.spend(uid, 'life:Currency:Lifetime:0', MICROS)
    await turns(10)
    await applied({ budgets: [MONTH] })
    await ledger.forget([{ subject: uid, fields: ['life:Currency:Lifetime:0'] }])
    await applied({ budgets: [{ ...MONTH, amount: '30' }] })
    await turns(10)
    expect([await limits(), lossEvents()]).toEqual(['True Enforceable', 0])
  })

  test('of a budget that was removed and is added again is restored and is no loss, though the ledger had forgotten it', async () => {
    const uid = await forgotten()
    await applied({ budgets: [MONTH, EVER] })
    await turns(10)
    expect([ledger.window(uid, EVER_FIELD).spent, ledger.window(uid, FIELD).spent]).toEqual([5 * MICROS, 3 * MICROS])
    expect([await limits(), lossEvents()]).toEqual(['True Enforceable', 0])
    ledger.wipe()
    await turns(10)
    expect([await limits(), lossEvents()]).toEqual(['False SpendUncertain', 1])
  })

  test('of a budget that was removed and is added again while no operator runs is restored and is no loss', async () => {
    const uid = await forgotten()
    await world.stopProcesses()
    await world.applyKey({ budgets: [MONTH, EVER] })
    await world.start()
    await turns(10)
    expect([ledger.window(uid, EVER_FIELD).spent, ledger.window(uid, FIELD).spent]).toEqual([5 * MICROS, 3 * MICROS])
    expect([await limits(), lossEvents()]).toEqual(['True Enforceable', 0])
    ledger.wipe()
    await turns(10)
    expect([await limits(), lossEvents()]).toEqual(['False SpendUncertain', 1])
  })

  test('does not delay the suspension of a key while budgets cannot be seeded', async () => {
    await world.start()
    await applied()
    ledger.isDown = true
    await applied({ budgets: [MONTH], state: 'Suspended' })
    expect((await world.keyRecords())[0]?.state).toBe('Suspended')
  })
})

describe('a dead process', () => {
  test('has its holds counted as spent if its pod no longer serves, and not while it may only be cut off', async () => {
    await world.serve(['gateway-0', 'gateway-1'])
    await world.start()
    const uid = await applied()
    await turns(3)
    ledger.hold(uid, FIELD, '1', 3 * MICROS) // the process of every pod of this world
    await world.serve([], ['gateway-0', 'gateway-1'])
    await turns(100)
    expect(ledger.calls.filter((call) => call.startsWith('reap'))).toEqual([])
    await world.serve([])
    await turns(60)
    expect(ledger.calls.filter((call) => call.startsWith('reap'))).toEqual([`reap ${uid} 1`])
  })
})

describe('a key that the keyring has lost, and that the cache of a new leader lacks', () => {
  const EVER: Budget = { ...MONTH, name: 'ever', window: 'Lifetime' }
  const LIFE = 'ever:Currency:Lifetime:0'
  let uid: string

  beforeEach(async () => {
    await world.start()
    world.freezeWatch('Standbys')
    uid = await applied({ budgets: [EVER] })
    ledger.spend(uid, LIFE, 5 * MICROS)
    await turns(10)
    await world.stopProcesses()
    for (const shard of await world.shards('keyring')) await world.objects.remove(secrets, refOf(shard))
  })

  test.each(['the counts of gateways are still there', 'the counts of gateways are lost'])(
    'has its spend when it is restored, although Redis was away at the start; afterwards %s',
    async (what) => {
      ledger.isDown = world.storeDown = true
      await world.start()
      await turns(120)
      if (what.endsWith('lost')) ledger.wipe()
      ledger.isDown = world.storeDown = false
      await turns(20)
      world.thawWatch()
      await turns(20)
      expect(await world.keyRecords()).toMatchObject([{ uid, state: 'Active' }])
      expect(ledger.window(uid, LIFE).spent).toBe(5 * MICROS)
      expect(await durable()).toEqual({ [uid]: { [LIFE]: 5 * MICROS } })
    },
  )

  test('has its spend when it is restored from its Secret, although Redis was emptied before the start', async () => {
    emptyRedis()
    await world.start()
    await turns(120)
    world.thawWatch()
    await world.settle()
    expect(await world.keyRecords()).toMatchObject([{ uid, state: 'Active' }])
    expect(ledger.window(uid, LIFE).spent).toBe(5 * MICROS)
  })

  test('loses its spend at the next check if it was deleted meanwhile', async () => {
    await world.objects.patch(apiKeys, { namespace: SHOP, name: 'bot' }, [{ op: 'remove', path: '/metadata/finalizers' }])
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await world.start()
    await world.pass(700)
    await turns(10)
    expect([await world.keyRecords(), ledger.budgets.has(uid), await durable()]).toEqual([[], false, {}])
  })
})

describe('a deleted key', () => {
  test('L9 leaves nothing in the ledger, however late its last call reports', async () => {
    await world.start()
    const uids: string[] = []
    for (let at = 0; at < 20; at += 1) uids.push(await applied({ budgets: [MONTH], limits: { requestsPerMinute: 5 } }, `bot-${at}`))
    for (const uid of uids) ledger.spend(uid, FIELD, MICROS)
    await turns(10)
    for (const at of uids.keys()) await world.objects.remove(apiKeys, { namespace: SHOP, name: `bot-${at}` })
    await world.settle()
    for (const lateAfter of [2, 98, 98]) {
      await turns(lateAfter)
      for (const uid of uids) ledger.others.set(`proc ${uid}`, uid)
    }
    await turns(98)
    expect([ledger.budgets.size, ledger.others.size, await durable()]).toEqual([0, 0, {}])
    const removals = ledger.calls.filter((call) => call.startsWith('remove')).length
    await turns(300)
    expect(ledger.calls.filter((call) => call.startsWith('remove')).length - removals).toBeLessThanOrEqual(20)
  })

  test('keeps its spend while only a wrong list lacks its ApiKey, and loses it once a live read confirms the deletion', async () => {
    const uid = await spentKey(5)
    const present = await world.key()
    world.watches.miss(apiKeys, present)
    await turns(120)
    expect(ledger.window(uid, FIELD).spent).toBe(5 * MICROS)
    expect(await durable()).toEqual({ [uid]: { [FIELD]: 5 * MICROS } })
    expect(await world.keyRecords()).toMatchObject([{ state: 'Active' }])
    await world.objects.patch(apiKeys, { namespace: SHOP, name: 'bot' }, [{ op: 'remove', path: '/metadata/finalizers' }])
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await turns(120)
    expect([ledger.budgets.has(uid), await durable()]).toEqual([false, {}])
  })

  test('is found by the sweep if it was deleted while no operator ran, and so are keys with other names', async () => {
    await world.start()
    const uid = await applied()
    await world.stopProcesses()
    ledger.budgets.set('somebody-else', ledger.budgets.get(uid)!)
    ledger.others.set('odd', undefined)
    await world.start()
    await turns(70)
    expect([[...ledger.budgets.keys()], ledger.others.size]).toEqual([[uid], 0])
  })
})

test('junk that fills the store is removed within seconds, and again when it comes back', async () => {
  await world.start()
  const uid = await applied()
  await turns(70)
  for (let round = 0; round < 2; round += 1) {
    ledger.isFull = true
    ledger.others.set(`hg:l:{${uid}}:junk-${round}`, undefined)
    await turns(12)
    expect(ledger.others.size).toBe(0)
  }
  ledger.isFull = false
  ledger.others.set(`hg:l:{${uid}}:junk`, undefined)
  await turns(60)
  expect(ledger.others.size, 'without need the next walk is an hour later').toBe(1)
})
