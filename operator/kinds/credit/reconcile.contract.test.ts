import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type AccountRecord, decodeAccountRecord } from '#contract/records/account-record.ts'
import { account, credit, namespace, plan, SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { accounts, credits, plans } from '#api/resources.ts'
import { KubeError, type ObjectRef, uidOf } from '#kube/port.ts'
import { namespaces } from '#kube/resources.ts'
import { accountRow } from '../account/kind.ts'
import type { Kind } from '../kind.ts'
import { planRow } from '../plan/kind.ts'
import { creditRow } from './kind.ts'

/** The kind, which calls `onLook` whenever it looks at an object. */
function counted(kind: Kind, onLook: () => void): Kind {
  const observe = kind.observe.bind(kind)
  return Object.assign(kind, {
    observe: (ref: ObjectRef) => {
      onLook()
      return observe(ref)
    },
  })
}

type CreditSpec = Parameters<typeof credit>[1]

const MICROS = 1_000_000
const ACME = { namespace: '', name: 'acme' }

describe('a Credit', () => {
  let world: OperatorWorld

  beforeEach(async () => {
    world = new OperatorWorld()
    await world.apply(namespaces, namespace(SHOP))
    await world.apply(plans, plan('pro'))
    await world.start()
  })
  afterEach(() => world.stop())

  const pay = async (name: string, spec: CreditSpec = {}): Promise<void> => {
    await world.objects.create(credits, credit(name, spec))
    await world.settle()
  }
  const open = async (name = 'acme', spec: Parameters<typeof account>[1] = {}): Promise<void> => {
    await world.apply(accounts, account(name, { billing: 'Prepaid', ...spec }))
    await world.settle()
  }
  const remove = async (name: string): Promise<void> => {
    await world.objects.remove(credits, { namespace: '', name })
    await world.settle()
  }
  const run = async (seconds: number): Promise<void> => {
    for (let step = 0; step < seconds * 20; step += 1) await world.pass(0.05)
  }
  const booked = (name: string): Promise<string> => world.condition(credits, name, 'Booked')
  const records = async (): Promise<AccountRecord[]> => (await world.texts('account')).map(decodeAccountRecord)
  /** The sum that gateways know, in units. */
  const published = async (name = 'acme'): Promise<number | undefined> => {
    const sum = (await records()).find((record) => record.name === name && record.state !== 'Deleted')?.balance?.credits
    return sum === undefined ? undefined : Number(sum) / MICROS
  }

  test('is booked, and gateways have the amount before it is Booked', async () => {
    await open()
    world.writes.length = 0
    await pay('pay-1')
    expect([await booked('pay-1'), await published()]).toEqual(['True Booked', 25])
    const [first, ...others] = world.writes.filter((write) => write.includes('credits'))
    const isOtherBook = (write: string): boolean => write.startsWith('create secrets hg-credits-') // the first Credit begins all of them
    expect([first, others.filter((write) => !isOtherBook(write))]).toEqual([
      expect.stringContaining('hg-credits-'),
      ['status credits pay-1'],
    ])
  })

  test('counts in a record of its account, and rewrites nothing of its keys', async () => {
    await open()
    await world.settledKey({ accountRef: { name: 'acme' } })
    const keys = await world.texts('key')
    world.writes.length = 0
    await pay('pay-1')
    expect(await world.texts('key')).toEqual(keys)
    expect(world.writes.filter((write) => write.includes('keyring'))).toEqual([])
  })

  test('is not booked before an account of the name has books, and is then', async () => {
    await pay('pay-1')
    expect(await booked('pay-1')).toBe('False AccountNotFound')
    await open()
    expect([await booked('pay-1'), await published()]).toEqual(['True Booked', 25])
  })

  test('is not booked before the books of its account are durable: nobody may ever own the name', async () => {
    world.refuse(({ verb, name }) => verb !== 'get' && name.startsWith('hg-balances-'), new KubeError('Forbidden', 403, 'no Role'))
    await world.apply(accounts, account('acme', { billing: 'Prepaid' }))
    await world.objects.create(credits, credit('pay-1'))
    await run(5)
    expect([await booked('pay-1'), await world.shards('credits')]).toEqual(['False Pending', []])
    world.beforeCall = () => undefined
    await run(11)
    await world.settle()
    expect([await booked('pay-1'), await published()]).toEqual(['True Booked', 25])
  })

  test('that names a uid is booked only for that Account', async () => {
    await open()
    const uid = uidOf((await world.objects.get(accounts, ACME))!)
    await pay('pay-1', { accountRef: { name: 'acme', uid: 'another' } })
    await pay('pay-2', { accountRef: { name: 'acme', uid } })
    expect([await booked('pay-1'), await booked('pay-2'), await published()]).toEqual(['False AccountNotFound', 'True Booked', 25])
  })

  test('counts for ever: deleting it takes nothing back, and the same payment counts once', async () => {
    await open()
    await pay('pay-1')
    await remove('pay-1')
    await world.restart()
    expect(await published()).toBe(25)
    await pay('pay-1')
    expect([await booked('pay-1'), await published()]).toEqual(['True Booked', 25])
    await world.restart()
    expect(await published()).toBe(25)
  })

  test('with the name of a payment of another account or amount does not count, and an Event says so', async () => {
    await open()
    await open('globex')
    await pay('pay-1')
    await remove('pay-1')
    await pay('pay-1', { accountRef: { name: 'globex' } })
    expect([await booked('pay-1'), await published('acme'), await published('globex')]).toEqual(['False IdUsed', 25, 0])
    expect(world.events.map(({ name, reason }) => `${name} ${reason}`)).toContain('pay-1 IdUsed')
    await remove('pay-1')
    await pay('pay-1', { amount: '26' })
    expect([await booked('pay-1'), await published()]).toEqual(['False IdUsed', 25])
  })

  test('is booked for the name of an account that was deleted, and its successor has it', async () => {
    await open()
    const uid = uidOf((await world.objects.get(accounts, ACME))!)
    await world.objects.remove(accounts, ACME)
    await pay('late', { amount: '-5' })
    expect(await booked('late')).toBe('True Booked')
    await world.apply(accounts, account('acme', { billing: 'Prepaid' }, { annotations: { 'headgate.dev/reopen-books': uid } }))
    await world.settle()
    expect(await published()).toBe(-5)
  })

  test('whose entry cannot be written says why at once, and is booked once it can', async () => {
    await open()
    world.refuse(({ verb, name }) => verb !== 'get' && name.startsWith('hg-credits-'), new KubeError('Forbidden', 403, 'no Role'))
    await world.objects.create(credits, credit('pay-1'))
    await run(1)
    expect([await booked('pay-1'), await world.message(credits, 'pay-1', 'Booked')]).toEqual([
      'False Pending',
      expect.stringContaining('no Role'),
    ])
    expect(await published()).toBe(0)
    world.beforeCall = () => undefined
    await run(11)
    await world.settle()
    expect([await booked('pay-1'), await published()]).toEqual(['True Booked', 25])
  })

  test('that finds no room is BooksFull, and does not count', async () => {
    await open()
    world.refuse(({ verb, name }) => verb !== 'get' && name.startsWith('hg-credits-'), new KubeError('Other', 413, 'too large'))
    await world.objects.create(credits, credit('pay-1'))
    await run(1)
    expect([await booked('pay-1'), await published()]).toEqual(['False BooksFull', 0])
  })

  test('is not Booked while Redis does not answer, and is when it answers again', async () => {
    await open()
    world.storeDown = true
    await world.objects.create(credits, credit('pay-1'))
    await run(5)
    expect(await booked('pay-1')).not.toBe('True Booked')
    world.storeDown = false
    await run(5)
    await world.settle()
    expect([await booked('pay-1'), await published()]).toEqual(['True Booked', 25])
  })

  test('of a suspended account is published too', async () => {
    await open('acme', { state: 'Suspended' })
    await pay('pay-1')
    expect([await booked('pay-1'), await published()]).toEqual(['True Booked', 25])
  })

  test('50 at once all count', async () => {
    await open()
    const names = Array.from({ length: 50 }, (_, at) => `pay-${at}`)
    await Promise.all(names.map((name) => world.objects.create(credits, credit(name, { amount: '0.000001' }))))
    await world.settle()
    expect(new Set(await Promise.all(names.map(booked)))).toEqual(new Set(['True Booked']))
    expect((await records())[0]?.balance?.credits).toBe('50')
  })

  test('of one account is Booked within a few turns, while another account has a storm of 300', async () => {
    await open()
    await open('globex')
    world.beforeCall = ({ verb }) => (verb === 'applyStatus' ? world.sleep(20) : undefined)
    const names = Array.from({ length: 300 }, (_, at) => `storm-${at}`)
    await Promise.all(names.map((name) => world.objects.create(credits, credit(name))))
    await run(0.2)
    await world.objects.create(credits, credit('pay-1', { accountRef: { name: 'globex' } }))
    for (let turn = 0; turn < 200 && (await booked('pay-1')) === ''; turn += 1) await world.pass(0.01)
    const ahead = (await Promise.all(names.map(booked))).filter((found) => found !== '')
    expect([await booked('pay-1'), await published('globex')]).toEqual(['True Booked', 25])
    expect(ahead.length).toBeLessThan(150)
  })

  test('is looked at a few times, although further Credits of its account come and its status waits', async () => {
    let looks = 0
    await world.stop()
    world = new OperatorWorld([
      planRow,
      accountRow,
      { ...creditRow, create: (context) => counted(creditRow.create(context), () => (looks += 1)) },
    ])
    await world.apply(plans, plan('pro'))
    await world.start()
    await open()
    world.beforeCall = ({ verb }) => (verb === 'applyStatus' ? world.sleep(1_000) : verb === 'write' ? world.sleep(8) : undefined)
    const names = Array.from({ length: 400 }, (_, at) => `pay-${at}`)
    for (const name of names) {
      await world.objects.create(credits, credit(name, { amount: '0.000001' }))
      await world.pass(0.01)
    }
    await world.settle()
    expect(new Set(await Promise.all(names.map(booked)))).toEqual(new Set(['True Booked']))
    expect(looks / names.length).toBeLessThan(7)
  })

  test('a restart writes nothing but the claims of the books', async () => {
    await open()
    await pay('pay-1')
    await world.stopProcesses()
    world.writes.length = 0
    await world.start()
    expect(world.writes.filter((write) => !/hg-(balances|credits)-/.test(write))).toEqual([])
  })
})

describe('a kill of the operator', () => {
  test('at any write neither loses a Credit nor counts it twice, also if its event is sent again', async () => {
    for (const when of ['before', 'after', 'late'] as const) for (let write = 0; write < 12; write += 1) await killedAt(write, when)
  })

  async function killedAt(write: number, when: 'before' | 'after' | 'late'): Promise<void> {
    const world = new OperatorWorld()
    try {
      await world.apply(plans, plan('pro'))
      await world.apply(accounts, account('acme', { billing: 'Prepaid' }))
      await world.start()
      await world.stopProcesses()
      await world.start({}, { write, when })
      await world.objects.create(credits, credit('pay-1'))
      await world.objects.create(credits, credit('refund-1', { amount: '-1', type: 'Refund' }))
      await world.settle()
      await world.objects.remove(credits, { namespace: '', name: 'pay-1' })
      const isBooked = (await published(world)) === '24000000'
      await world.objects.create(credits, credit('pay-1'))
      await world.start()
      await world.settle()
      await world.landLate()
      await world.pass(700)
      await world.settle()
      const conditions = ['pay-1', 'refund-1'].map((name) => world.condition(credits, name, 'Booked'))
      const found = [await published(world), ...(await Promise.all(conditions))]
      expect(found, JSON.stringify({ write, when, isBooked })).toEqual(['24000000', 'True Booked', 'True Booked'])
    } finally {
      await world.stop()
    }
  }

  async function published(world: OperatorWorld): Promise<string | undefined> {
    return (await world.texts('account')).map(decodeAccountRecord)[0]?.balance?.credits
  }
})
