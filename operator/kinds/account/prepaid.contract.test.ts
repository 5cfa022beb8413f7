import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type AccountRecord, decodeAccountRecord } from '#contract/records/account-record.ts'
import { parseMicros } from '#contract/values/micros.ts'
import { MemoryLedgerStore } from '../../../gateway/limits/memory-ledger.ts'
import { account, credit, namespace, plan, servedModel, SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { accounts, apiKeys, credits, plans, servedModels } from '#api/resources.ts'
import { uidOf } from '#kube/port.ts'
import { namespaces, type Secret, secrets } from '#kube/resources.ts'
import { REOPEN_ANNOTATION } from '../../accounts/claim.ts'
import { shardOf } from '../../shards/shard.ts'

const UNIT = 1_000_000
const LOW = parseMicros('5')
const ACME = { namespace: '', name: 'acme' }

describe('a prepaid Account', () => {
  let world: OperatorWorld

  beforeEach(async () => {
    world = new OperatorWorld()
    await world.apply(namespaces, namespace(SHOP))
    await world.apply(plans, plan('pro'))
  })
  afterEach(() => world.stop())

  const open = async (spec: Parameters<typeof account>[1] = {}): Promise<void> => {
    await world.apply(accounts, account('acme', { billing: 'Prepaid', ...spec }))
    await world.settledKey({ accountRef: { name: 'acme' } })
  }
  const pay = async (name: string, amount: string): Promise<void> => {
    await world.objects.create(credits, credit(name, { amount }))
    await world.settle()
  }
  const live = async () => (await world.objects.get(accounts, ACME))!
  const ready = (): Promise<string> => world.condition(accounts, 'acme', 'Ready')
  const keyReady = (): Promise<string> => world.condition(apiKeys, 'bot', 'Ready')
  const amount = async (): Promise<string | undefined> => (await live()).status?.balance?.amount
  const records = async (): Promise<AccountRecord[]> => (await world.texts('account')).map(decodeAccountRecord)
  const reasons = (): string[] => world.events.filter(({ name }) => name === 'acme').map(({ reason }) => reason)
  const run = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) await world.pass(1)
  }
  /** A gateway has spent so much since its start. */
  const spend = async (units: number): Promise<void> => {
    const ledger = (await records()).find(({ name }) => name === 'acme')?.ledger ?? ''
    const spent = new Map([['1:gateway', Math.round(units * UNIT)]])
    world.balances.mergeBalances([{ name: ledger, books: { openFrom: 0, closedSpend: 0n, spent }, isReady: false }])
  }

  test('shows spend in Redis that its Credits cannot pay, with one Event, and does not take it over', async () => {
    await world.start()
    await open()
    await pay('pay-1', '25')
    await spend(9_000_000)
    await run(15)
    expect(await world.condition(accounts, 'acme', 'SpendHeldBack')).toBe('True SpendHeldBack')
    expect([await amount(), reasons().filter((reason) => reason === 'SpendHeldBack')]).toEqual(['25.00', ['SpendHeldBack']])
  })

  test('has keys that are not Ready while no model that they may call has a price, also from the day on which it pays in advance', async () => {
    const backends = [{ name: 'one', url: 'https://models.example' }]
    const model = (spec: object) => world.apply(servedModels, servedModel('llama', { maxOutputTokens: 1, backends, ...spec }))
    const limits = (): Promise<string> => world.condition(apiKeys, 'bot', 'LimitsEnforceable')
    await world.start()
    await model({})
    await open({ billing: 'Unmetered' })
    await pay('pay-1', '25')
    expect([await keyReady(), await limits()]).toEqual(['True Ready', 'True Enforceable'])
    await world.apply(accounts, account('acme', { billing: 'Prepaid' }))
    await world.settle()
    expect([await keyReady(), await limits()]).toEqual(['False PriceMissing', 'False PriceMissing'])
    await model({ pricing: { inputPerMillion: '0', outputPerMillion: '0' } })
    await world.settle()
    expect([await keyReady(), await limits()]).toEqual(['True Ready', 'True Enforceable'])
  })

  test('begins without a balance, works after its first Credit, and stops when the balance is used up; so do its keys', async () => {
    await world.start()
    await open()
    expect([await ready(), await keyReady(), await amount()]).toEqual(['False BalanceExhausted', 'False BalanceExhausted', '0.00'])
    await pay('pay-1', '25')
    expect([await ready(), await keyReady(), await amount()]).toEqual(['True Ready', 'True Ready', '25.00'])
    await spend(24.995)
    await run(15)
    expect([await ready(), await keyReady(), await amount()]).toEqual(['False BalanceExhausted', 'False BalanceExhausted', '0.005'])
    expect(await world.condition(accounts, 'acme', 'BalanceExhausted')).toBe('True BalanceExhausted')
    await pay('pay-2', '1')
    expect([await ready(), await keyReady(), (await live()).status?.spent]).toEqual(['True Ready', 'True Ready', '24.995'])
    expect(reasons().filter((reason) => reason.startsWith('Balance'))).toEqual(['BalanceRestored', 'BalanceExhausted', 'BalanceRestored'])
  })

  test('that only the cache of a new leader lacks keeps its record, and loses the record once it is deleted', async () => {
    await world.start()
    world.freezeWatch('Standbys', 'accounts')
    await open()
    await world.restart()
    await world.applyKey({ accountRef: { name: 'acme' } }, 'another') // enqueues the account
    await run(15)
    expect(await records()).toMatchObject([{ name: 'acme', state: 'Active' }])
    await world.objects.remove(accounts, ACME)
    await run(75)
    expect(await records()).toMatchObject([{ name: 'acme', state: 'Deleted' }])
  })

  test('whose books have just begun can spend at once, because nothing can be held', async () => {
    await world.start()
    await open()
    const [{ ledger } = { ledger: '' }] = await records()
    expect(world.balances.readBalances([ledger])).toMatchObject([{ openFrom: 0 }])
  })

  test('publishes a refund below zero, and says that the balance is used up', async () => {
    await world.start()
    await open()
    await pay('pay-1', '25')
    await pay('refund-1', '-30')
    expect((await records())[0]?.balance).toEqual({ credits: String(-5 * UNIT), billing: 'Prepaid' })
    expect([await ready(), await amount()]).toEqual(['False BalanceExhausted', '-5.00'])
  })

  test('has one Event when its balance becomes low, whatever it spends from then on, also after a restart', async () => {
    await world.start({ billingLowBalance: LOW })
    await open()
    await pay('pay-1', '25')
    for (const units of [21, 22, 23]) {
      await spend(units)
      await run(70)
    }
    await world.restart({ billingLowBalance: LOW })
    await run(70)
    expect(reasons().filter((reason) => reason === 'BalanceLow')).toEqual(['BalanceLow'])
    expect(await ready()).toBe('True Ready')
  })

  test('shows its spend once a minute at most', async () => {
    await world.start()
    await open()
    await pay('pay-1', '1000')
    world.writes.length = 0
    for (let second = 1; second <= 180; second += 1) {
      await spend(second)
      await world.pass(1)
    }
    const statuses = world.writes.filter((write) => write === 'status accounts acme').length
    expect(statuses).toBeGreaterThan(1)
    expect(statuses).toBeLessThan(5)
  })

  test('shows its balance neither in Events nor in the conditions of a key', async () => {
    await world.start({ billingLowBalance: LOW })
    await open()
    await pay('pay-1', '1234.567891')
    for (const units of [1230.123456, 1234.567891]) {
      await spend(units)
      await run(70)
    }
    const messages = (await world.key()).status?.conditions?.map(({ message }) => message)
    const texts = JSON.stringify([world.events, messages])
    expect(texts).toContain('BalanceExhausted')
    expect(texts).not.toMatch(/1234|1230|4\.44/)
  })

  test('keeps its balance over a restart, which writes no status', async () => {
    await world.start()
    await open()
    await pay('pay-1', '25')
    await spend(5)
    await run(70)
    expect(await amount()).toBe('20.00')
    await world.stopProcesses()
    world.writes.length = 0
    await world.start()
    await run(10)
    expect([await amount(), world.writes.filter((write) => write.startsWith('status'))]).toEqual(['20.00', []])
  })

  test('shows its newest balance, although a leader has died between a Credit and its status', async () => {
    await world.start()
    await open()
    const { status } = await live()
    await pay('pay-1', '25')
    await world.objects.applyStatus(accounts, { ...(await live()), ...(status && { status }) })
    await world.restart()
    expect([await ready(), await keyReady(), await amount()]).toEqual(['True Ready', 'True Ready', '25.00'])
    const former = await live()
    await pay('pay-2', '1')
    await world.objects.applyStatus(accounts, { ...(await live()), ...(former.status && { status: former.status }) })
    await world.restart()
    expect([await ready(), await amount()]).toEqual(['True Ready', '26.00'])
  })

  test('restores what Redis has lost, from the books, before anything is granted', async () => {
    await world.start()
    await open()
    await pay('pay-1', '25')
    await spend(5)
    await run(15)
    world.balances = new MemoryLedgerStore(() => Math.floor(world.now))
    const [{ ledger } = { ledger: '' }] = await records()
    await run(3)
    expect(world.balances.readBalances([ledger])).toEqual(['absent'])
    await run(15)
    expect(world.balances.readBalances([ledger])).toMatchObject([{ openFrom: 0, spent: new Map([['1:gateway', 5 * UNIT]]) }])
    await run(60) // a status shows spend at most once a minute
    expect(await amount()).toBe('20.00')
  })

  test('counts what an account has spent before it pays in advance', async () => {
    await world.start()
    await open({ billing: 'Unmetered' })
    await spend(5)
    await run(70)
    expect([await ready(), await amount(), (await live()).status?.spent]).toEqual(['True Ready', undefined, '5.00'])
    await open({ billing: 'Prepaid' })
    expect([await ready(), await amount()]).toEqual(['False BalanceExhausted', '-5.00'])
    expect(reasons()).toContain('BalanceExhausted')
    await pay('grant-1', '5.01')
    expect([await ready(), await amount()]).toEqual(['True Ready', '0.01'])
  })

  describe('whose books are damaged', () => {
    const damage = async (): Promise<void> => {
      await world.stopProcesses()
      for (const secret of await world.shards('balances'))
        await world.objects.update(secrets, { ...secret, data: { records: Buffer.from('damaged').toString('base64') } })
    }

    test('waits, and goes on with the spend of Redis', async () => {
      await world.start()
      await open()
      await pay('pay-1', '25')
      await spend(5)
      await run(15)
      await damage()
      await world.start()
      await run(30)
      await world.settle()
      expect(reasons()).toContain('BooksDamaged')
      expect([await world.condition(accounts, 'acme', 'Accepted'), await keyReady()]).toEqual(['True Accepted', 'True Ready'])
      await run(70)
      expect(await amount()).toBe('20.00')
    })

    test('stops its keys with 503 while Redis has lost them too, until an administrator goes on with what is left', async () => {
      await world.start()
      await open()
      await pay('pay-1', '25')
      await damage()
      world.balances = new MemoryLedgerStore(() => Math.floor(world.now))
      await world.start()
      await run(30)
      expect(await world.condition(accounts, 'acme', 'Accepted')).toBe('False BooksDamaged')
      expect([await records(), await world.condition(apiKeys, 'bot', 'Accepted')]).toEqual([[], 'False AccountNotAccepted'])
      const { metadata } = await live()
      await world.apply(accounts, {
        ...(await live()),
        metadata: { ...metadata, annotations: { ...metadata.annotations, [REOPEN_ANNOTATION]: `new-${uidOf(await live())}` } },
      })
      await run(15)
      await world.settle()
      expect([await world.condition(accounts, 'acme', 'Accepted'), (await records()).length]).toEqual(['True Accepted', 1])
    })
  })

  describe('whose Credits were lost with their Secret while no operator ran', () => {
    const accepted = (name = 'acme'): Promise<string> => world.condition(accounts, name, 'Accepted')
    const at = (id: string) => ({ namespace: 'headgate', name: `hg-credits-8-${shardOf(id, 8)}` })
    let lost: Secret

    beforeEach(async () => {
      await world.start()
      await open()
      await world.apply(accounts, account('beta', { billing: 'Prepaid' }))
      await pay('pay-1', '25')
      await world.objects.create(credits, credit('pay-2', { accountRef: { name: 'beta' } }))
      await world.settle()
      await world.objects.remove(credits, { namespace: '', name: 'pay-1' })
      await world.stopProcesses()
      lost = (await world.objects.get(secrets, at('pay-1')))!
      await world.objects.remove(secrets, at('pay-1'))
      await world.restart()
      await world.restart()
    })

    test('waits with 503 over restarts, while others go on, and works when the Secret was restored', async () => {
      expect(at('pay-1')).not.toEqual(at('pay-2'))
      expect([await accepted(), await accepted('beta')]).toEqual(['False BooksDamaged', 'True Accepted'])
      expect([(await records()).map(({ name }) => name), await keyReady()]).toEqual([['beta'], 'False NotAccepted'])
      expect(world.logs.join('\n')).toMatch(
        /Secret hg-credits-8-\d is lost.*restore it from a backup, or create an empty Secret of its name/,
      )
      const { name, namespace: own = '', labels = {} } = lost.metadata
      await world.objects.create(secrets, { ...lost, metadata: { name, namespace: own, labels } })
      await run(100)
      await world.settle()
      expect([await accepted(), await ready()]).toEqual(['True Accepted', 'True Ready'])
      await world.restart()
      expect([await ready(), await amount()]).toEqual(['True Ready', '25.00'])
    })

    test('goes on without them when an administrator has put an empty Secret in its place', async () => {
      const { name, namespace: own } = lost.metadata
      await world.objects.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name, ...(own && { namespace: own }) } })
      await run(40)
      await world.settle()
      await world.restart()
      expect([await accepted(), await ready()]).toEqual(['True Accepted', 'False BalanceExhausted'])
      await pay('pay-1', '25')
      await world.restart()
      expect([await ready(), await amount()]).toEqual(['True Ready', '25.00'])
    })
  })
})
