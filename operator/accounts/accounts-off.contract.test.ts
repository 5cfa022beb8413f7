import { afterEach, beforeEach, expect, test } from 'vitest'
import { accounts, plans } from '#api/resources.ts'
import { decodeAccountRecord } from '#contract/records/account-record.ts'
import { namespaces, secrets } from '#kube/resources.ts'
import { FakeLedgerStore } from '../../test/support/fake-ledger-store.ts'
import { account, namespace, plan, SHOP } from '../../test/support/objects.ts'
import { OperatorWorld } from '../../test/support/operator-world.ts'

const BUDGET = { name: 'life', amount: '1000', unit: 'Tokens', window: 'Lifetime', onExceeded: 'Block' } as const
const FIELD = 'life:Tokens:Lifetime:0'
/** The operator's regular check. */
const CHECK_SECONDS = 610
const OFF = { hasAccounts: false }

let world: OperatorWorld
let ledger: FakeLedgerStore

beforeEach(async () => {
  world = new OperatorWorld()
  ledger = world.ledger = new FakeLedgerStore(() => world.now)
  await world.apply(namespaces, namespace(SHOP))
  await world.start()
  await world.apply(plans, plan('pro'))
  await world.apply(accounts, account('acme', { budgets: [BUDGET] }))
  await world.settle()
})
afterEach(() => world.stop())

async function turns(seconds: number): Promise<void> {
  for (let at = 0; at < seconds; at += 1) await world.pass(1)
}

test('the spend of the budgets of accounts stays while accounts are off', async () => {
  const [name = ''] = (await world.texts('account')).map((text) => decodeAccountRecord(text).ledger)
  ledger.spend(name, FIELD, 7)
  await turns(15)
  await world.restart(OFF)
  await turns(CHECK_SECONDS)
  expect(ledger.budgets.has(name)).toBe(true)
  ledger.wipe()
  await world.restart()
  await turns(15)
  expect(ledger.window(name, FIELD).spent).toBe(7)
})

test('an operator without accounts goes on beside books that a leader with a higher fencing token has claimed', async () => {
  await world.stopProcesses()
  for (const shard of await world.shards('balances')) {
    const annotations = { ...shard.metadata.annotations, 'headgate.dev/leader': '99' }
    await world.objects.update(secrets, { ...shard, metadata: { ...shard.metadata, annotations } })
  }
  const operator = await world.start(OFF)
  await turns(CHECK_SECONDS)
  expect(operator.isDead).toBe(false)
})
