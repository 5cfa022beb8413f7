/** An operator whose Redis is that of another installation: nothing in it changes, and the operator works once it has a Redis of its own. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisKeys, settledSubjects, usedAccounts } from '#contract/redis/redis-keys.ts'
import { openLab } from '../support/lab.ts'
import type { RedisPart } from '../support/redis-part.ts'
import type { Stack } from '../support/stack.ts'
import { uninstall } from '../support/uninstall.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const BUDGET = { name: 'life', amount: '1000', unit: 'Tokens', window: 'Lifetime', onExceeded: 'Block' } as const
/** Commands of an operator that only looks whose Redis it is. INFO and CLIENT belong to every connection. */
const READS: ReadonlySet<string> = new Set(['hgetall', 'info', 'client', 'auth', 'hello', 'select', 'ping'])
/** A turn of the ledger comes each second, and a check of the projection every two seconds. */
const WATCHED_MS = 8_000

const lab = openLab()

describe('the Redis of another installation', () => {
  let owner: Stack
  let stranger: Stack
  let redis: RedisPart

  beforeAll(async () => {
    owner = await lab.stack({ operatorEnv: { LOG_LEVEL: 'info' } })
    redis = owner.redis
    await owner.issueKey('bot', { budgets: [BUDGET] })
    await owner.remove(owner.operator) // what gateways have counted waits in Redis
    await redis.admin.sadd(settledSubjects('hg'), 'of-the-owner')
    await redis.admin.sadd(usedAccounts('hg'), 'of-the-owner')
    const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
    stranger = await lab.stack({ gateways: 0, start: false, operatorEnv: { ...redis.envFor('operator'), ACCOUNTS: 'true' } }, plane)
  })
  afterAll(() => stranger.operator.stop())

  it('is read and never written, also by an operator with keys, budgets and accounts of its own; then a Redis of its own is used at once', async () => {
    const monitor = await redis.connect('admin').monitor()
    const commands = new Set<string>()
    const sources = new Set<string>()
    monitor.on('monitor', (_, [command = '', ...args]: readonly string[], source: string) => {
      if (command.toLowerCase() === 'client' && args.includes('headgate-operator')) sources.add(source)
      if (sources.has(source)) commands.add(command.toLowerCase())
    })
    await stranger.operator.launch()
    await stranger.apply('Plan', 'basic')
    const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': stranger.namespace } }
    await stranger.apply('Account', 'acme', { planRef: { name: 'basic' }, namespaces, billing: 'Prepaid' })
    await stranger.apply('ApiKey', 'bot', { budgets: [BUDGET] })
    await stranger.apply('ApiKey', 'of-acme', { accountRef: { name: 'acme' } })
    await eventually(async () => expect(await stranger.operator.metric('headgate_operator_installation_foreign')).toBe(1))
    const since = performance.now()
    await waitFor('some turns of the ledger', () => performance.now() - since > WATCHED_MS)
    monitor.disconnect()
    expect([...commands].filter((command) => !READS.has(command))).toEqual([])
    expect(commands).toContain('hgetall')
    expect(await redis.admin.smembers(settledSubjects('hg'))).toContain('of-the-owner')
    expect(await redis.admin.smembers(usedAccounts('hg'))).toContain('of-the-owner')
    expect(await stranger.operator.isReady()).toBe(false)
    expect(stranger.operator.process.log()).toContain('another installation')

    await redis.admin.flushall()
    for (const name of ['bot', 'of-acme']) await stranger.untilCondition('ApiKey', name, 'SecretIssued')
    expect(await stranger.operator.isReady()).toBe(true)
  })

  it('keeps its data when this installation is uninstalled with all of its data', async () => {
    await redis.admin.hset(redisKeys('hg').meta, 'installation', 'another-one') // has taken over meanwhile
    const { code, text } = await uninstall(stranger, '--purge')
    expect([code, text]).toEqual([
      0,
      expect.stringMatching(/the data in Redis could not be deleted: .*another installation \(another-one\)/),
    ])
    expect(await redis.admin.exists(redisKeys('hg').meta)).toBe(1)
    expect(text).toMatch(/Secrets of the operator were deleted/)
  })
})
