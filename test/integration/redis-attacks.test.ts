/**
 * Attacks on Redis by a gateway pod that was taken over, with the rights of the gateways' user: keys are still issued and suspended, and the
 * damage is repaired. `redis-gateway-user` has the refused commands. Also a Redis that belongs to another installation.
 */
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { storedRecords } from '../support/durable-bytes.ts'
import { differences, untilEveryGateway } from '../support/gateway-answers.ts'
import { openLab } from '../support/lab.ts'
import { projectionHead } from '../support/projection-view.ts'
import { ACKS, ATTACKS, PODS, RedisAttacker } from '../support/redis-attacker.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const ATTACK_MS = 3_000
/** Largest acknowledgement that may remain. */
const MAX_ACK_BYTES = 64 * 1024

const lab = openLab()

describe("as the gateways' Redis user", () => {
  let stack: Stack
  let attacker: RedisAttacker
  let before = ''
  let count = 0
  beforeAll(async () => {
    stack = await lab.stack({ gateways: 2 })
    await stack.redis.admin.config('SET', 'maxmemory', '192mb') // since the chart's own Redis has a bound too
    before = await stack.issueKey('before')
    for (let i = 0; i < ATTACKS.length; i++) suspendable.push(await stack.issueKey(`suspendable-${i}`))
  })
  beforeEach(() => {
    attacker = new RedisAttacker(stack.redis)
  })
  afterEach(() => attacker.close())

  const suspendable: string[] = []

  it('no function of the library writes a record, the log or meta for that user', async () => {
    const head = await projectionHead(stack)
    const records = await storedRecords(stack)
    const library = (await stack.redis.admin.call('FUNCTION', 'LIST')) as unknown[]
    const names = [...new Set(JSON.stringify(library).match(/"hg[A-Za-z0-9_]*"/g))].map((quoted) => quoted.slice(1, -1))
    expect(names.length, 'functions of the library').toBeGreaterThan(1)
    const keys = ['hg:{proj}:meta', 'hg:{proj}:log', `hg:{proj}:${head.epoch}:keys`, `hg:{proj}:${head.epoch}:models`]
    const args = ['999999', head.epoch, '', '0', '1000', 'key', 'put', 'forged', '{"v":1,"rev":0}', '']
    for (const name of names) {
      for (const order of [keys, keys.toReversed(), [PODS, ...keys], [PODS, ACKS, ...keys]]) {
        await attacker.redis.call('FCALL', name, String(order.length), ...order, ...args).catch(() => undefined) // refused or without effect
      }
    }
    const after = await projectionHead(stack)
    expect([after.epoch, after.fence]).toEqual([head.epoch, head.fence])
    expect(await storedRecords(stack)).toEqual(records)
  })

  it.each(ATTACKS)('$name: keys are issued and suspended during the attack, and the damage is repaired', async (attack) => {
    const { epoch } = await projectionHead(stack)
    const index = count++
    const striking = attacker.attack(attack, ATTACK_MS)
    const issued = stack.issueKey(`issued-${index}`)
    issued.catch(() => undefined) // awaited below, unless an earlier assertion fails
    await stack.setState(`suspendable-${index}`, 'Suspended')
    await untilEveryGateway(stack.gateways, suspendable[index] ?? '', 401)
    await untilEveryGateway(stack.gateways, await issuedWithin(`issued-${index}`), 200)
    await striking
    await expectRepaired()
    await issued
    expect((await projectionHead(stack)).epoch, 'nothing was rebuilt').toBe(epoch)
    expect(await differences(stack.gateways, new Map([['before', before]]), 200)).toEqual([])
  })

  /** The value, as soon as the Secret exists. Ready may wait for gateways whose heartbeats the attack destroys. */
  async function issuedWithin(name: string): Promise<string> {
    return waitFor('the Secret', () => stack.value(name))
  }

  async function expectRepaired(): Promise<void> {
    const name = `after-${count}`
    const { admin } = stack.redis
    const pods = stack.gateways.map(({ spec }) => spec.pod)
    await eventually(async () => {
      expect([await admin.type(PODS), await admin.type(ACKS)]).toEqual(['zset', 'hash'])
      const live = await admin.zrangebyscore(PODS, Date.now() - 2_500, '+inf')
      expect(new Set(live.map((process) => process.split('/')[0]))).toEqual(new Set(pods))
      const acks = Object.values(await admin.hgetall(ACKS))
      expect(Math.max(...acks.map((text) => text.length))).toBeLessThanOrEqual(MAX_ACK_BYTES)
    })
    await stack.issueKey(name)
    await eventually(async () => {
      const { status } = await stack.untilCondition('ApiKey', name, 'Programmed')
      expect(status.programmed).toMatchObject({ ready: pods.length, total: pods.length })
    })
    await stack.deleteKey(name)
  }
})

describe('a Redis that belongs to another installation', () => {
  it('is not written by an operator, which reports the other installation, until REDIS_TAKE_OVER is true', async () => {
    const owner = await lab.stack({ gateways: 1 })
    const value = await owner.issueKey('owned')
    const redis = owner.redis.envFor('operator')
    const stranger = await lab.stack({ gateways: 0, operatorEnv: redis, start: false })
    const { operator } = stranger
    await operator.launch()
    await waitFor('the log to say so', () => /another installation.*REDIS_TAKE_OVER/is.test(operator.process.log()))
    expect(operator.process.running).toBe(true)
    expect(await operator.isReady()).toBe(false)
    expect(await differences(owner.gateways, new Map([['owned', value]]), 200)).toEqual([])
    await owner.setState('owned', 'Suspended')
    await untilEveryGateway(owner.gateways, value, 401)
    await operator.stop()

    await owner.operator.stop()
    await operator.start({ REDIS_TAKE_OVER: 'true' })
    await stranger.apply('ApiKey', 'new')
    const issued = await waitFor('the key of the new owner', () => stranger.value('new'))
    await untilEveryGateway(owner.gateways, issued, 200)
    await owner.operator.launch()
    await waitFor('the former owner to refuse', () => /another installation.*REDIS_TAKE_OVER/is.test(owner.operator.process.log()))
    expect(await differences(owner.gateways, new Map([['new', issued]]), 200)).toEqual([])
  })
})
