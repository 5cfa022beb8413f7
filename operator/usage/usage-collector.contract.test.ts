import { afterEach, beforeEach, expect, test } from 'vitest'
import { accounts, apiKeys, plans } from '#api/resources.ts'
import { countsOf } from '#contract/usage/usage-report.ts'
import { namespaces, secrets } from '#kube/resources.ts'
import { account, namespace, plan, SHOP } from '../../test/support/objects.ts'
import { OperatorWorld } from '../../test/support/operator-world.ts'
import { answerOf, questionOf } from './usage-query.ts'
import { UsageReader } from './usage-reader.ts'

let world: OperatorWorld
let number = 0

beforeEach(async () => {
  world = new OperatorWorld()
  await world.apply(namespaces, namespace(SHOP))
  await world.start()
  await world.apply(plans, plan('pro'))
  await world.apply(accounts, account('acme'))
  await world.settle()
})
afterEach(() => world.stop())

async function ledgerName(): Promise<string> {
  const [text = ''] = await world.texts('account')
  return (JSON.parse(text) as { ledger: string }).ledger
}

/** A gateway reports this many requests of a key. */
async function used(count: number, key = 'k'): Promise<void> {
  const rows = [{ key, model: 'llama', counts: countsOf({ requests: count }) }]
  await world.usage.count([{ account: await ledgerName(), process: 'p', number: ++number, ageMs: 0, rows }])
}

async function turns(count = 4): Promise<void> {
  for (let at = 0; at < count; at += 1) await world.pass(4)
}

/** What any replica answers. */
async function answer(
  search = 'by=',
): Promise<{ readonly requests: number; readonly incomplete: readonly string[]; readonly keys: readonly unknown[] }> {
  const { open, closed } = await new UsageReader({ kube: world.objects, namespace: 'headgate' }).read('acme')
  const question = questionOf(new URLSearchParams(`from=2020-01-01&${search}`), world.now)
  if (typeof question === 'string') throw new Error(question)
  const { rows, incomplete } = answerOf('acme', open, closed, question)
  return { requests: rows.reduce((sum, row) => sum + Number(row['requests']), 0), incomplete, keys: rows.map(({ key }) => key) }
}

test('what gateways count is in the Secrets within two turns, with the name of the key, also after the key was deleted', async () => {
  await world.settledKey({ accountRef: { name: 'acme' } })
  const uid = (await world.key()).metadata.uid ?? ''
  await used(3, uid)
  await turns(2)
  await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
  await used(2, uid)
  await turns()
  expect(await answer('by=key')).toEqual({ requests: 5, incomplete: [], keys: [`${SHOP}/bot`] })
})

test('nothing counts twice and nothing is lost, whenever the operator is killed', async () => {
  let count = 0
  for (const when of ['before', 'after', 'late'] as const) {
    for (let write = 0; write < 3; write += 1) {
      await world.stopProcesses()
      const killed = await world.start({}, { write, when })
      await used(1)
      count += 1
      await turns(3)
      killed.kill()
      await world.start()
      await world.landLate()
      await turns()
    }
  }
  expect(await answer()).toMatchObject({ requests: count, incomplete: [] })
})

test('what is taken stays in the store until it is durable, however long the API server hangs', async () => {
  await world.stopProcesses()
  const hanging = await world.start()
  world.beforeCall = ({ plural, name }) => (plural === 'secrets' && name.startsWith('hg-usage-') ? new Promise(() => undefined) : undefined)
  for (let round = 0; round < 3; round += 1) {
    await used(1)
    await turns(3)
  }
  hanging.kill()
  world.beforeCall = () => undefined
  await world.start()
  await turns()
  expect(await answer()).toMatchObject({ requests: 3, incomplete: [] })
})

test('an emptied store loses what was not taken, and the day says so', async () => {
  await used(5)
  await turns()
  await used(1)
  world.usage.empty()
  await used(2)
  await turns()
  const { requests, incomplete } = await answer()
  expect([requests >= 5, requests <= 7, incomplete.length]).toEqual([true, true, 1])
  await used(4)
  await turns()
  expect((await answer()).requests - requests).toBe(4)
})

test('days move to the history two days later, and every call counts once on the way', async () => {
  for (let day = 0; day < 5; day += 1) {
    await used(1)
    await turns()
    world.now += 86_400_000
    await turns()
    expect((await answer()).requests).toBe(day + 1)
  }
  await used(1)
  await turns(6)
  const names = (await world.objects.list(secrets, 'headgate')).map(({ metadata }) => metadata.name)
  expect(names.filter((name) => name.startsWith('hg-history-'))).toHaveLength(1)
  expect((await answer()).requests).toBe(6)
})

test('an account without use costs no write', async () => {
  await used(1)
  await turns()
  const before = world.writes.length
  await turns(20)
  expect(world.writes.slice(before)).toEqual([])
})
