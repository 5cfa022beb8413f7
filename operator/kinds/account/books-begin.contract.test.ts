/** What a prepaid account may spend at once when its books begin, begin again or get another owner. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type AccountRecord, decodeAccountRecord } from '#contract/records/account-record.ts'
import { MemoryLedgerStore } from '../../../gateway/limits/memory-ledger.ts'
import { account, namespace, plan, SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { accounts, plans } from '#api/resources.ts'
import { uidOf } from '#kube/port.ts'
import { namespaces, secrets } from '#kube/resources.ts'
import { MARK_ANNOTATION, REOPEN_ANNOTATION } from '../../accounts/claim.ts'

const ACME = { namespace: '', name: 'acme' }

let world: OperatorWorld

beforeEach(async () => {
  world = new OperatorWorld()
  await world.apply(namespaces, namespace(SHOP))
  await world.apply(plans, plan('pro'))
  await world.start()
})
afterEach(() => world.stop())

const create = (annotations: Readonly<Record<string, string>> = {}) =>
  world.apply(accounts, account('acme', { billing: 'Prepaid' }, { annotations }))
const live = async () => (await world.objects.get(accounts, ACME))!
const accepted = (): Promise<string> => world.condition(accounts, 'acme', 'Accepted')
const active = async (): Promise<AccountRecord | undefined> =>
  (await world.texts('account')).map(decodeAccountRecord).find(({ state }) => state === 'Active')

/** @returns whether the store grants so long after the first moment at which gateways may admit the account */
async function grantsAfter(seconds: number): Promise<boolean> {
  for (let step = 0; (await active()) === undefined; step += 1) {
    if (step > 100) throw new Error('gateways have no record')
    await world.pass(0.05)
  }
  for (let second = 0; second < seconds; second += 1) await world.pass(1)
  const [read] = world.balances.readBalances([(await active())?.ledger ?? ''])
  return typeof read === 'object' && read.openFrom !== undefined
}

/** The store loses all data. */
const emptied = (): void => void (world.balances = new MemoryLedgerStore(() => Math.floor(world.now)))

describe('a prepaid Account', () => {
  test('of a new name can spend as soon as gateways know it, since nothing can be held', async () => {
    await create()
    expect(await grantsAfter(0)).toBe(true)
  })

  test('that takes over a name waits for what gateways still hold, if Redis has lost it', async () => {
    await create()
    await world.settle()
    const former = uidOf(await live())
    await world.objects.remove(accounts, ACME)
    await world.restart()
    emptied()
    await create({ [REOPEN_ANNOTATION]: former })
    expect([await grantsAfter(4), await grantsAfter(4)]).toEqual([false, true])
  })

  test('whose books are begun again after a loss waits for what gateways still hold', async () => {
    await create()
    await world.settle()
    await world.stopProcesses()
    for (const { metadata } of await world.shards('balances'))
      await world.objects.remove(secrets, { namespace: 'headgate', name: metadata.name })
    emptied()
    await world.start()
    expect(await accepted()).toBe('False BooksMissing')
    const { annotations = {} } = (await live()).metadata
    await create({ ...annotations, [REOPEN_ANNOTATION]: `new-${uidOf(await live())}` })
    expect([await grantsAfter(4), await grantsAfter(4)]).toEqual([false, true])
  })

  test('begins missing books only by its own uid: an annotation for a former Account, which stays in a manifest, begins none', async () => {
    await create()
    await world.settle()
    await world.stopProcesses()
    for (const { metadata } of await world.shards('balances'))
      await world.objects.remove(secrets, { namespace: 'headgate', name: metadata.name })
    await world.start()
    const { annotations = {} } = (await live()).metadata
    await create({ ...annotations, [REOPEN_ANNOTATION]: 'new-uid-of-a-former-account' })
    await world.settle()
    expect([await accepted(), await active()]).toEqual(['False BooksMissing', undefined])
  })

  test('that took over a name keeps it when older Secrets are restored while an operator runs', async () => {
    await create()
    await world.settle()
    const former = uidOf(await live())
    const older = await world.shards('balances')
    await world.objects.remove(accounts, ACME)
    await world.settle()
    await create({ [REOPEN_ANNOTATION]: former })
    await world.settle()
    const { [MARK_ANNOTATION]: mark = '' } = (await live()).metadata.annotations ?? {}
    await create({ [MARK_ANNOTATION]: mark }) // the other annotation has had its effect
    for (const secret of await world.shards('balances')) {
      const { data } = older.find(({ metadata }) => metadata.name === secret.metadata.name) ?? {}
      if (data) await world.objects.update(secrets, { ...secret, data })
    }
    await world.pass(700) // the operator reads its Secrets again
    await world.settle()
    expect(await accepted()).toBe('True Accepted')
    await world.restart()
    expect([await accepted(), (await active())?.uid]).toEqual(['True Accepted', uidOf(await live())])
  })
})
