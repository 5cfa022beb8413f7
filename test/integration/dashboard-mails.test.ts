/**
 * Mails about money and keys over a real API server, operator and Redis, with the rights of the chart, by two replicas on one Postgres where there is
 * one. Each replica has caches of its own, as in a cluster.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accounts, apiKeys, credits, plans, servedModels } from '#api/resources.ts'
import { InformerFactory } from '#kube/informer-factory.ts'
import { systemClock } from '#platform/clock.ts'
import { createLog } from '#platform/log.ts'
import type { DashboardDeps } from '../../dashboard/server/dashboard.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { DashboardWorld, type FormBrowser } from '../support/dashboard-world.ts'
import { applyDashboardRights } from '../support/dashboard-rights.ts'
import { openLab } from '../support/lab.ts'
import { missingPostgres, PostgresPart } from '../support/postgres.ts'
import { realKubePort } from '../support/real-credit-books.ts'
import type { Stack } from '../support/stack.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually } from '../support/wait-for.ts'

const lab = openLab()
const folder = temporaryFolderOfFile()
const KEYS = 'headgate-accounts'
const CREDITS = '/apis/headgate.dev/v1alpha1/credits'
const ACCOUNTS = '/apis/headgate.dev/v1alpha1/accounts'
const MAYA = 'maya@fernwood.example'
const hasPostgres = missingPostgres() === undefined
const REPLICAS = hasPostgres ? 2 : 1
/** A replica collects changes of an account for this time, ms. */
const COLLECT_MS = 5_000
const silent = createLog('test', 'error', { write: () => undefined }).log
let plane: ControlPlane
let stack: Stack
let world: DashboardWorld
let maya: FormBrowser
let account = ''
const closers: (() => unknown)[] = []

beforeAll(async () => {
  plane = await lab.ownControlPlane()
  stack = await lab.stack({ gateways: 1, namespaces: [KEYS], operatorEnv: { ACCOUNTS: 'true', BILLING_LOW_BALANCE: '5.00' } }, plane)
  await stack.apply('Plan', 'default')
  await applyDashboardRights(plane)
  const file = join(folder, 'dashboard.kubeconfig')
  await plane.kubeconfigFor('headgate', 'headgate-dashboard', file)
  const kube = realKubePort(file)
  const caches = (): DashboardDeps['caches'] => {
    const source = { source: kube, clock: systemClock, logger: silent, random: Math.random }
    const [everywhere, ofKeys] = [new InformerFactory(source, []), new InformerFactory(source, [KEYS])]
    const made = {
      accounts: everywhere.createInformer(accounts),
      apiKeys: ofKeys.createInformer(apiKeys),
      plans: everywhere.createInformer(plans),
      models: everywhere.createInformer(servedModels),
      credits: everywhere.createInformer(credits),
    }
    const factories = [everywhere, ofKeys]
    queueMicrotask(() => factories.forEach((factory) => factory.start())) // after all listeners are subscribed
    closers.push(() => factories.forEach((factory) => factory.stop()))
    return made
  }
  let database: { readonly url: string } | undefined
  if (hasPostgres) {
    const postgres = await PostgresPart.start(folder)
    closers.push(() => postgres.stop())
    database = { url: await postgres.createDatabase('dashboard') }
  }
  world = await DashboardWorld.prepare({ folder, kube: () => kube, caches, ...(database && { database }) })
  closers.push(() => world[Symbol.asyncDispose]())
  await world.startReplicas(REPLICAS)
  maya = await world.person(MAYA)
  account = (await maya.get('/api/me')).json().account.name
})
afterAll(async () => {
  for (const close of closers.toReversed()) await close()
})

async function pay(name: string, amount: string): Promise<void> {
  const type = amount.startsWith('-') ? 'Refund' : 'TopUp'
  await plane.admin.call('POST', CREDITS, {
    ...{ apiVersion: 'headgate.dev/v1alpha1', kind: 'Credit', metadata: { name } },
    spec: { accountRef: { name: account }, amount, type, reference: `pi_${name}` },
  })
  await eventually(async () => {
    const credit = await plane.admin.get(`${CREDITS}/${name}`)
    expect(credit?.['status']).toMatchObject({ conditions: [{ type: 'Booked', status: 'True' }] })
  })
}

/** Mails about the account, in any order. */
const mailed = (): readonly string[] =>
  world.mails.mails
    .map(({ name }) => name)
    .filter((name) => name !== 'verify')
    .toSorted()

/** All replicas have looked at everything, and no further mail came. */
async function settles(expected: readonly string[]): Promise<void> {
  await eventually(() => expect(mailed()).toEqual(expected.toSorted()))
  await world.notifyAll()
  await eventually(async () => expect(await world.dashboard.identity.outboxRows.waiting()).toBe(0))
  expect(mailed()).toEqual(expected.toSorted())
}

describe('people get one mail', () => {
  const expected: string[] = []

  it('for each movement of money, and for each crossing of the balance that the operator shows', async () => {
    await eventually(async () => {
      const found = await plane.admin.get(`${ACCOUNTS}/${account}`)
      expect(found?.['status']).toMatchObject({ balance: { amount: '0.00' } })
    })
    await world.notifyAll() // a balance that begins at nothing is no news
    await pay('a', '10.00')
    expected.push('credit-added')
    await settles(expected)
    await pay('b', '-7.00')
    expected.push('credit-reversed', 'balance-low')
    await settles(expected)
    await pay('c', '-3.00')
    expected.push('credit-reversed', 'balance-empty')
    await settles(expected)
    expect((await world.mails.wait(MAYA, 'credit-added')).text).toMatch(/10\.00 EUR was added[^]*pi_a/)
    expect((await world.mails.wait(MAYA, 'balance-low')).text).toContain('3.00 EUR left, which is less than 5.00 EUR')
  })

  it('for a key that they made, without its value, and for its revocation', async () => {
    const { key, value } = (await maya.call('POST', '/api/keys', { name: 'docs', models: ['*'], attempt: 'attempt-of-maya-1' })).json()
    expected.push('key-created')
    await settles(expected)
    const { text } = await world.mails.wait(MAYA, 'key-created')
    expect(text).toContain(`docs (${value.slice(0, 8)}…)`)
    expect(text).not.toContain(value.slice(0, 9))
    await maya.call('POST', `/api/keys/${key.id}/revoke`, { name: 'docs' })
    expected.push('key-revoked')
    await settles(expected)
  })

  it('for 300 Credits at once, or a few, and the sum is exact', async () => {
    const before = world.mails.mails.length
    const startedMs = performance.now()
    await Promise.all(Array.from({ length: 300 }, (_, nth) => pay(`many-${nth}`, '0.01')))
    const sums = (): number =>
      world.mails.mails
        .slice(before)
        .flatMap(({ text }) => /([\d.]+) EUR was added/.exec(text)?.[1] ?? [])
        .reduce((sum, amount) => sum + Math.round(Number(amount) * 100), 0)
    await eventually(() => expect(sums()).toBe(300))
    const rounds = 1 + (performance.now() - startedMs) / COLLECT_MS
    await world.notifyAll()
    expect(sums()).toBe(300)
    expect(world.mails.mails.length - before).toBeLessThanOrEqual(Math.max(14, REPLICAS * rounds))
    expected.splice(0, expected.length, ...mailed())
  })

  it('and none again after all replicas have started again and listed everything', async () => {
    await world.stop()
    await world.startReplicas(REPLICAS)
    await eventually(async () => expect((await maya.get('/api/keys')).json().keys).toHaveLength(1))
    await settles(expected)
    await pay('d', '20.00')
    await settles([...expected, 'credit-added'])
  })
})
