/**
 * The ledger on a Redis Cluster: one script sees all keys of a subject, and a dead node stops only its own subjects. Gateways and operator
 * have no setting for a Cluster yet. These tests cover the ledger's store over a client that knows the Cluster, and the loading of the
 * library on every primary.
 */
import type { Cluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clusterSlot } from '../../gateway/limits/cluster-slot.ts'
import { LedgerCallRefused } from '../../gateway/limits/ledger-store.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { libraryRevision } from '#contract/redis/redis-functions.ts'
import { keepLibrary } from '../../operator/books/library-keeper.ts'
import { callOf, describeLedgerStore, rate } from '../contract/ledger-store.suite.ts'
import { clockedLedger, loadClockedLedger } from '../support/ledger-on-cluster.ts'
import { nameOf, RedisCluster } from '../support/redis-cluster.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually } from '../support/wait-for.ts'

const IP = '127.0.0.1'
const FUNCTIONS = ledgerFunctions('hg')

const folder = temporaryFolderOfFile()
let cluster: RedisCluster
let client: Cluster
let store: RedisLedgerStore

beforeAll(async () => {
  cluster = await RedisCluster.start(folder, IP)
  client = await cluster.connect()
  store = new RedisLedgerStore(client, 'hg')
  await loadClockedLedger(cluster)
}, 20_000)

afterAll(async () => {
  client.disconnect()
  await cluster.stop()
})

/** Loads the library as the operator does. @returns the number of primaries that lacked it */
const keep = () => keepLibrary(client.nodes('master'), FUNCTIONS, libraryRevision(FUNCTIONS.code))
const subjects = (name: string) => Array.from({ length: 30 }, (_, at) => `${name}-${at}`)
const ask = (subject: string, number: number) => store.call(callOf({ subject, number, rates: [rate({ limit: 10, need: 1, ask: 1 })] }))

describe.each([0, 1, 2])('primary %i:', (at) => {
  describeLedgerStore('a Cluster', () => clockedLedger(cluster, client, cluster.nodes[at]!))
})

test('the operator loads the library on all three primaries, once', async () => {
  expect([await keep(), await keep()]).toEqual([3, 0])
})

test('#15066: calls of every subject work, on all three primaries', async () => {
  const all = subjects('each')
  for (const subject of all) expect(await ask(subject, 1)).toMatchObject({ status: 'granted', rates: [{ rest: 9 }] })
  expect(new Set(all.map((subject) => store.nodeOf(subject)))).toEqual(new Set(cluster.nodes.map(nameOf)))
})

test('each node is pinged by its own name', async () => {
  for (const node of cluster.nodes) await store.ping(nameOf(node))
  await expect(store.ping(`${IP}:1`)).rejects.toThrow('not part of the cluster')
})

test('a primary without the library refuses its own subjects, and no others, until the operator has loaded it', async () => {
  const replaced = cluster.nodes[1]!
  await replaced.admin.call('FUNCTION', 'FLUSH')
  for (const subject of subjects('missing')) {
    if (store.nodeOf(subject) === nameOf(replaced)) await expect(ask(subject, 1)).rejects.toThrow(LedgerCallRefused)
    else expect(await ask(subject, 1)).toMatchObject({ status: 'granted' })
  }
  expect(await keep()).toBe(1)
  for (const subject of subjects('missing')) expect(await ask(subject, 2)).toMatchObject({ status: 'granted' })
})

test('a subject whose slot moves to another primary keeps its counts there', async () => {
  const subject = subjects('moving').find((one) => store.nodeOf(one) === nameOf(cluster.nodes[0]!)) ?? ''
  expect(await ask(subject, 1)).toMatchObject({ status: 'granted', rates: [{ rest: 9 }] })
  await cluster.moveSlot(clusterSlot(subject), cluster.nodes[1]!)
  expect(await ask(subject, 2)).toMatchObject({ status: 'granted', rates: [{ rest: 8 }] })
  await eventually(() => expect(store.nodeOf(subject)).toBe(nameOf(cluster.nodes[1]!)))
})

test('a dead node fails the calls of its own subjects, and no others', async () => {
  const dead = cluster.nodes[2]!
  const all = subjects('dead')
  for (const subject of all) expect(await ask(subject, 1)).toMatchObject({ status: 'granted', rates: [{ rest: 9 }] })
  const where = new Map(all.map((subject) => [subject, store.nodeOf(subject)]))
  await dead.stop()
  for (const subject of all.filter((one) => where.get(one) !== nameOf(dead))) {
    expect(await ask(subject, 2)).toMatchObject({ status: 'granted', rates: [{ rest: 8 }] })
  }
  const [lost = ''] = all.filter((one) => where.get(one) === nameOf(dead))
  await expect(ask(lost, 2)).rejects.toThrow()
})
