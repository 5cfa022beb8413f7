/** The shortest ways in which an earlier design lost money, lent it twice or made it. The account has a Credit of 4, and each request holds 2. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { secrets } from '#kube/resources.ts'
import { checkRest, durableBooks, rest } from '../../test/support/credit-rest.ts'
import { NAMESPACE } from '../../test/support/credit-operator.ts'
import type { CreditGateway } from '../../test/support/credit-gateway.ts'
import { CreditWorld } from '../../test/support/credit-world.ts'
import { settle } from '../../test/support/manual-clock.ts'
import { shardOf } from '../shards/shard.ts'
import { REOPEN_ANNOTATION } from './claim.ts'

let world: CreditWorld
let a: CreditGateway
let b: CreditGateway

beforeEach(async () => {
  world = new CreditWorld()
  ;[a, b] = world.gateways
  await world.lead()
  await world.createAccount('acme')
  await world.pay('pay-1', 'acme', 4)
  await world.catchUp()
})
afterEach(() => world.stop())

const balance = (name = 'acme'): bigint => world.leader.keeper.balanceOf(name)
const uid = (): string => world.uids.get('acme')?.at(-1) ?? ''
const isActive = (): boolean => world.records.get(uid())?.state === 'Active'

/** A request of 2 that costs 2. */
function spend(gateway: CreditGateway): void {
  expect(world.admit(gateway, 'acme', 2)).toBe(true)
  gateway.settle(gateway.holds[0]!, 2)
}

async function atRest(): Promise<bigint> {
  await rest(world)
  await checkRest(world)
  return balance()
}

describe('a Credit', () => {
  test('B1: counts once, although its object was deleted and the payment is replayed, and never for a second account', async () => {
    await world.createAccount('beta')
    await world.deleteCredit('pay-1')
    await world.catchUp()
    await world.pay('pay-1', 'acme', 4)
    await world.catchUp()
    expect(balance()).toBe(4n)
    await world.deleteCredit('pay-1')
    await world.pay('pay-1', 'beta', 4)
    expect([await atRest(), balance('beta')]).toEqual([4n, 0n])
  })

  test('B2: that was deleted before it was booked never counted, and one that was booked counts for ever', async () => {
    await world.pay('pay-2', 'acme', 4)
    await world.deleteCredit('pay-2')
    await world.catchUp()
    expect([balance(), world.recordOf('acme')?.credits]).toEqual([4n, 4n])
    await world.pay('pay-3', 'acme', 4)
    world.leader.see()
    await world.deleteCredit('pay-3') // the operator has seen it
    await world.work(world.leader)
    expect(await atRest()).toBe(8n)
  })

  test('for a deleted account is booked all the same: a refund takes the money back', async () => {
    await world.deleteAccount('acme')
    await world.catchUp()
    await world.pay('refund-1', 'acme', -4)
    expect(await atRest()).toBe(0n)
  })

  test('for a name that never had an account waits for one', async () => {
    await world.pay('pay-2', 'beta', 4)
    await world.catchUp()
    expect(balance('beta')).toBe(0n)
    await world.createAccount('beta')
    await atRest()
    expect(balance('beta')).toBe(4n)
  })
})

describe('spend', () => {
  test('B3: of a request that ends after a change of period counts, and lends the balance to nobody in between', async () => {
    await world.pay('pay-2', 'acme', 2)
    await world.catchUp()
    spend(a)
    expect(world.admit(a, 'acme', 2)).toBe(true)
    await world.store.raisePeriods([{ name: world.leader.books.ledgerName('acme'), period: 2 }]) // which A does not know yet
    expect([world.admit(b, 'acme', 2), world.admit(b, 'acme', 1)]).toEqual([true, false])
    a.settle(a.holds[0]!, 2)
    await world.pass(10_000)
    b.settle(b.holds[0]!, 1)
    for (let fold = 0; fold < 3; fold += 1) await world.hours()
    expect(await atRest()).toBe(1n)
    expect((await durableBooks(world)).books).toMatchObject([{ name: 'acme', closedSpend: 5n, spent: new Map() }])
  })

  test('B4: of a request that outlives its Account belongs to the next one of the name', async () => {
    expect(world.admit(a, 'acme', 2)).toBe(true)
    await world.deleteAccount('acme')
    await world.createAccount('acme')
    await world.reopen('acme')
    await world.catchUp()
    expect([isActive(), world.admit(b, 'acme', 2), world.admit(b, 'acme', 1)]).toEqual([true, true, false])
    a.settle(a.holds[0]!, 2)
    expect(await atRest()).toBe(0n)
  })

  test('B9: of a process that was frozen while the store went back counts once', async () => {
    const back = world.store.save()
    spend(a)
    a.report()
    await world.pass(10_000)
    a.isFrozen = true
    world.rollBack(back)
    await world.pass(10_000)
    expect(balance()).toBe(2n)
    a.isFrozen = false
    await world.pass(10_000)
    expect(await atRest()).toBe(2n)
  })

  test('B9: whose answer was lost counts once after the store was emptied', async () => {
    spend(a)
    a.losesReply = true
    a.report()
    a.isCutOff = true
    await world.pass(10_000)
    expect(balance()).toBe(2n)
    world.wipe()
    a.isCutOff = false
    expect(await atRest()).toBe(2n)
  })

  /** Two changes of period, before each of which B spends 1. */
  async function twoChanges(): Promise<void> {
    for (let change = 0; change < 2; change += 1) {
      expect(world.admit(b, 'acme', 1)).toBe(true)
      b.settle(b.holds[0]!, 1)
      await world.pass(10_000)
      await world.hours()
    }
    expect(world.openFrom(world.leader.books.ledgerName('acme'))).toBe(2)
  }

  describe('of a process that has missed two changes of period, when the store has just been emptied,', () => {
    test.each(['before', 'after'])('counts if the request ends %s the first report', async (when) => {
      expect(world.admit(a, 'acme', 1)).toBe(true)
      a.isFrozen = true
      await twoChanges()
      a.isFrozen = false
      world.wipe()
      if (when === 'after') a.report()
      a.settle(a.holds[0]!, 1)
      a.report()
      expect(await atRest()).toBe(1n)
    })

    test('is lost if the request has ended before them, and only that', async () => {
      expect(world.admit(a, 'acme', 1)).toBe(true)
      a.isCutOff = true
      a.settle(a.holds[0]!, 1)
      await twoChanges()
      a.isCutOff = false
      world.wipe()
      a.report()
      expect(await atRest()).toBe(2n)
    })
  })

  test.each(['before', 'after'])(
    'of a new process is lost if it ends before the books are merged into a store that went back by two changes, %s a report',
    async (when) => {
      const back = world.store.save()
      await twoChanges()
      world.kill(0)
      ;[a] = world.gateways
      a.sync()
      world.rollBack(back)
      expect(world.admit(a, 'acme', 1)).toBe(true)
      a.settle(a.holds[0]!, 1)
      if (when === 'after') a.report()
      expect(await atRest()).toBe(2n)
    },
  )

  test('B10: that a killed gateway could not measure is not charged, and what it held is free again', async () => {
    expect(world.admit(a, 'acme', 2)).toBe(true)
    world.kill(0)
    expect([world.admit(b, 'acme', 2), world.admit(b, 'acme', 2)]).toEqual([true, false])
    await world.pass(45_000)
    expect(world.admit(b, 'acme', 2)).toBe(true)
    expect(await atRest()).toBe(0n)
  })

  test.each([
    ['120 s, for an operator that has never seen it alive', 130_000],
    ['an hour', 3_620_000],
  ])('of a process that is silent for %s counts later: what it held is free until it reports again', async (_, ms) => {
    expect(world.admit(a, 'acme', 2)).toBe(true)
    a.isFrozen = true
    if (ms < 3_600_000) await world.lead()
    await world.pass(ms - 15_000)
    expect(world.admit(b, 'acme', 3)).toBe(false)
    await world.pass(30_000)
    a.isFrozen = false
    expect([world.admit(b, 'acme', 4), world.admit(b, 'acme', 1)]).toEqual([true, false])
    expect(await atRest()).toBe(-2n)
  })
})

describe('the name of an account', () => {
  test.each(['seen as one change', 'unseen, since no operator ran'])(
    'B5: is not reused silently by a deletion and a creation %s',
    async (how) => {
      if (how.startsWith('unseen')) world.leader.end()
      await world.deleteAccount('acme')
      await world.createAccount('acme')
      await world.catchUp()
      expect([isActive(), world.admit(a, 'acme', 1)]).toEqual([false, false])
      await world.reopen('acme')
      await world.catchUp()
      expect([isActive(), world.admit(a, 'acme', 2)]).toEqual([true, true])
      expect(await atRest()).toBe(2n)
    },
  )

  test('B5: is reopened once by an annotation that stays in the manifest', async () => {
    const manifest = { [REOPEN_ANNOTATION]: uid() }
    await world.deleteAccount('acme')
    await world.createAccount('acme', manifest)
    await world.catchUp()
    expect(isActive()).toBe(true)
    await world.deleteAccount('acme')
    await world.createAccount('acme', manifest)
    await world.catchUp()
    expect([isActive(), world.admit(a, 'acme', 1)]).toEqual([false, false])
    await atRest()
  })

  test('B6: belongs to a restored Account, whose books were kept at its deletion', async () => {
    spend(a)
    const restore = await world.backedUp('acme')
    await world.deleteAccount('acme')
    await world.catchUp()
    await restore()
    await world.catchUp()
    expect([isActive(), world.admit(a, 'acme', 2), world.admit(a, 'acme', 1)]).toEqual([true, true, false])
    expect(await atRest()).toBe(0n)
  })

  test('B7: has no balance where only the objects were restored, into an empty cluster', async () => {
    spend(a)
    const restore = await world.backedUp('acme')
    await world.catchUp()
    world.leader.end()
    world.wipe()
    world.records.clear()
    for (const { metadata } of await world.kube.store.list(secrets, NAMESPACE))
      await world.kube.store.remove(secrets, { namespace: NAMESPACE, name: metadata.name })
    await world.deleteAccount('acme')
    await restore()
    await world.catchUp()
    await world.catchUp()
    expect([isActive(), world.admit(a, 'acme', 1), world.admit(b, 'acme', 1)]).toEqual([false, false, false])
    expect((await durableBooks(world)).books).toEqual([])
  })
})

describe('a store that was emptied', () => {
  test('B8: grants nothing before each process has reported what it holds', async () => {
    expect(world.admit(a, 'acme', 2)).toBe(true)
    world.wipe()
    for (let second = 0; second < 5; second += 1) {
      expect(world.admit(b, 'acme', 2), `after ${second} s`).toBe(false)
      await world.pass(1_000)
    }
    await world.pass(10_000)
    expect([world.admit(b, 'acme', 2), world.admit(b, 'acme', 1)]).toEqual([true, false])
    expect(await atRest()).toBe(0n)
  })

  test('B8: waits again if it is emptied once more in the meantime', async () => {
    expect(world.admit(a, 'acme', 2)).toBe(true)
    world.wipe()
    await world.pass(5_000)
    world.wipe()
    a.isCutOff = true
    await world.pass(2_000)
    a.isCutOff = false
    for (let second = 0; second < 3; second += 1) {
      expect(world.admit(b, 'acme', 2), `after ${second} s`).toBe(false)
      await world.pass(1_000)
    }
    expect(await atRest()).toBe(2n)
  })

  test('lends what a process held that fell silent before its next report, and no more', async () => {
    expect(world.admit(a, 'acme', 2)).toBe(true)
    world.wipe()
    a.isCutOff = true
    await world.pass(15_000)
    expect([world.admit(b, 'acme', 4), world.admit(b, 'acme', 1)]).toEqual([true, false])
    b.settle(b.holds[0]!, 4)
    a.settle(a.holds[0]!, 2)
    a.isCutOff = false
    expect(await atRest()).toBe(-2n)
  })

  test('lends what a process had spent since its last report before it fell silent, until it reports again', async () => {
    spend(a)
    world.wipe()
    a.isCutOff = true
    await world.pass(15_000)
    a.isCutOff = false
    expect([world.admit(b, 'acme', 4), world.admit(b, 'acme', 1)]).toEqual([true, false])
    expect(await atRest()).toBe(-2n)
  })

  test('keeps new accounts waiting no longer than it takes to write their books', async () => {
    await world.createAccount('beta')
    await world.pay('pay-2', 'beta', 2)
    await world.catchUp()
    expect(world.admit(a, 'beta', 2)).toBe(true)
    await atRest()
  })
})

describe('a leader', () => {
  test('B11: that is deposed does not undo what the new one wrote into the same Secret', async () => {
    const old = world.leader
    spend(a)
    old.holdsWrite = /balances/
    await world.pass(6_000) // its write of the spend is under way
    await world.lead()
    await world.deleteAccount('acme')
    await world.createAccount('acme')
    await world.reopen('acme')
    await world.pay('pay-2', 'acme', 4)
    await world.catchUp()
    old.release()
    await world.pass(6_000)
    expect(old.isOver).toBe(true)
    const durable = await durableBooks(world)
    expect(durable.books).toMatchObject([{ owner: uid(), changes: 1 }])
    expect(durable.credits.map(({ id }) => id).toSorted()).toEqual(['pay-1', 'pay-2'])
    expect(await atRest()).toBe(6n)
  })

  test('B12: knows a refund that a former one booked after it had read the books', async () => {
    const old = world.leader
    const secret = `hg-credits-2-${shardOf('refund-1', 2)}`
    const started = world.lead((operator) => (operator.holdsWrite = new RegExp(secret)))
    await settle()
    await settle() // it has read the books, and the last part of its claim is under way
    await world.pay('refund-1', 'acme', -3)
    old.see()
    await world.work(old)
    await world.pass(1_000)
    await world.work(old)
    expect(world.recordOf('acme')?.credits).toBe(1n)
    world.leader.release()
    await started
    await world.work(world.leader)
    expect(world.recordOf('acme')?.credits).toBe(1n)
    await world.pay('refund-2', 'acme', -1)
    old.see()
    await world.work(old)
    await world.pass(1_000)
    expect(old.isOver, 'the claim stops it').toBe(true)
    expect(await atRest()).toBe(0n)
  })

  test.each(['before', 'after'] as const)('that dies %s any of its writes loses no Credit and no spend', async (when) => {
    for (let write = 0; write < 8; write += 1) {
      await world.pay(`pay-${write + 2}`, 'acme', 4)
      await world.catchUp()
      spend(a)
      world.leader.dieAt(write % 3, when)
      await world.pay(`more-${write}`, 'acme', 2)
      world.leader.see()
      await world.work(world.leader)
      await world.pass(8_000)
      await world.lead((operator) => operator.dieAt(write, when))
      await world.catchUp()
    }
    expect(await atRest()).toBe(4n + 8n * 4n)
  })
})
