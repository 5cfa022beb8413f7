/** The ledger on a Redis Cluster: one script sees all of a subject, and a dead node stops its own subjects alone. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { ledgerFunctions } from '../../gateway/shared/ledger-functions.ts'
import { freePort } from '../support/free-port.ts'
import { RedisPart } from '../support/redis-part.ts'
import { waitFor } from '../support/wait-for.ts'
import { callOf, rate } from '../contract/ledger-store.suite.ts'

const IP = '127.0.0.1'
const SLOTS = 16_384
const SUBJECTS = Array.from({ length: 30 }, (_, at) => `subject-${at}`)

const folder = mkdtempSync(join(tmpdir(), 'headgate-cluster-'))
const nodes: RedisPart[] = []
let client: Cluster
let store: RedisLedgerStore

beforeAll(async () => {
  const busPorts: number[] = []
  for (let at = 0; at < 3; at += 1) {
    const busPort = await freePort()
    busPorts.push(busPort)
    const args = [
      '--cluster-enabled',
      'yes',
      '--cluster-port',
      String(busPort),
      '--cluster-node-timeout',
      '2000',
      '--cluster-require-full-coverage',
      'no',
    ]
    nodes.push(await RedisPart.start(join(folder, String(at)), IP, { args }))
  }
  for (const [at, { admin }] of nodes.entries()) {
    const [first, last] = [Math.floor((SLOTS * at) / 3), Math.floor((SLOTS * (at + 1)) / 3) - 1]
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last))
    await admin.call('CLUSTER', 'MEET', IP, String(nodes[0]!.port), String(busPorts[0]))
    await admin.call('FUNCTION', 'LOAD', 'REPLACE', ledgerFunctions('hg').code)
  }
  for (const { admin } of nodes) {
    await waitFor('the cluster to know all slots', async () => {
      const info = String(await admin.call('CLUSTER', 'INFO'))
      return info.includes('cluster_state:ok') && info.includes(`cluster_slots_assigned:${SLOTS}`) && info.includes('cluster_known_nodes:3')
    })
  }
  const { REDIS_USERNAME: username, REDIS_PASSWORD: password } = nodes[0]!.envFor('admin')
  const passwords = nodes.map((node) => node.envFor('admin').REDIS_PASSWORD)
  for (const { admin } of nodes) await admin.acl('SETUSER', username, ...passwords.map((each) => `>${each}`))
  client = new Cluster([{ host: IP, port: nodes[0]!.port }], {
    redisOptions: { username, password, protocol: 2, disableClientInfo: true, maxRetriesPerRequest: 0 },
    maxRedirections: 3,
    enableOfflineQueue: true,
    slotsRefreshTimeout: 2_000,
  })
  client.on('error', () => undefined)
  store = new RedisLedgerStore(client, 'hg')
}, 20_000)

afterAll(async () => {
  client.disconnect()
  await Promise.all(nodes.map((node) => node.stop()))
  rmSync(folder, { recursive: true })
})

const ask = (subject: string, number: number) => store.call(callOf({ subject, number, rates: [rate({ limit: 10, need: 1, ask: 1 })] }))

test('#15066: calls of every subject work, on all three primaries', async () => {
  for (const subject of SUBJECTS) expect(await ask(subject, 1)).toMatchObject({ status: 'granted', rates: [{ rest: 9 }] })
  expect(new Set(SUBJECTS.map((subject) => store.nodeOf(subject)))).toEqual(new Set(nodes.map(({ port }) => `${IP}:${port}`)))
})

test('each node is pinged by its own name', async () => {
  for (const { port } of nodes) await store.ping(`${IP}:${port}`)
  await expect(store.ping(`${IP}:1`)).rejects.toThrow('not part of the cluster')
})

test('a dead node fails the calls of its own subjects, and no others', async () => {
  const dead = nodes[2]!
  const name = `${IP}:${dead.port}`
  const where = new Map(SUBJECTS.map((subject) => [subject, store.nodeOf(subject)]))
  await dead.stop()
  for (const subject of SUBJECTS.filter((one) => where.get(one) !== name)) {
    expect(await ask(subject, 2)).toMatchObject({ status: 'granted', rates: [{ rest: 8 }] })
  }
  const [lost = ''] = SUBJECTS.filter((one) => where.get(one) === name)
  await expect(ask(lost, 2)).rejects.toThrow()
})
