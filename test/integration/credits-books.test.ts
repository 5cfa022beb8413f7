/**
 * The books of prepaid accounts on a real API server with Redis, the operator and four gateways: whose they are, what a forged count or an
 * emptied Redis can change, and sums beyond the range of exact numbers.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, type ExpectedRow, expectRow } from '../support/ask.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import { binFolder } from '../support/control-plane.ts'
import { conditionOf } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { amountOf, PrepaidStack } from '../support/prepaid-stack.ts'
import { eventReasons } from '../support/reported.ts'
import { BALANCE, LIMITS_UNAVAILABLE, REVOKED } from '../support/rows.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()
let prepaid: PrepaidStack
/** A connection with the rights of the gateways. */
let intruder: Redis

beforeAll(async () => {
  prepaid = await PrepaidStack.open(lab, 4)
  intruder = prepaid.stack.redis.connect('gateway')
})
afterAll(async () => {
  intruder.disconnect()
  await prepaid.close()
})

async function opened(name: string, amount: string, keys: number): Promise<string[]> {
  await prepaid.account(name)
  const credentials = await prepaid.keys(name, keys)
  await prepaid.pay(`${name}-opening`, name, amount)
  await prepaid.untilAll(credentials, 200)
  return credentials
}

/** The Redis key of the balance of an account: no other one has this spend. */
async function keyOf(account: string): Promise<string> {
  const spent = String(prepaid.spentOf(account))
  return waitFor(`the spend of ${account} in Redis`, async () => {
    const { admin } = prepaid.stack.redis
    const keys = await admin.keys('hg:l:*:balance')
    const found = await Promise.all(keys.map(async (key) => (await admin.hget(key, 's')) === spent))
    return keys.find((_, at) => found[at])
  })
}

describe('an account that was deleted and created again', () => {
  let credentials: string[]
  let former: string

  beforeAll(async () => {
    credentials = await opened('reborn', '10', 2)
    former = String((await prepaid.accountObject('reborn')).metadata.uid)
    await prepaid.untilExact('reborn')
  })

  it('has no balance, and the keys of the former one answer 401 and spend nothing', async () => {
    await prepaid.stack.kube.remove(prepaid.stack.path('Account', 'reborn'))
    // calls of no server: one that runs when its key ends is cut, and costs an estimate in place of what the server reports
    await prepaid.untilAll(credentials, 401, { model: 'unpriced' })
    const spent = prepaid.spentOf('reborn')
    await prepaid.pay('reborn-late', 'reborn', '1.25')
    await prepaid.applyAccount('reborn')
    const created = await prepaid.stack.untilCondition('Account', 'reborn', 'Accepted', { status: 'False', reason: 'NameUsed' })
    expect(created.status.balance).toBeUndefined()
    expect(conditionOf(created, 'Accepted')?.message).toContain(`headgate.dev/reopen-books: ${former}`)
    await prepaid.stack.untilCondition('ApiKey', 'reborn-0', 'Accepted', { status: 'False', reason: 'AccountNotAccepted' })
    for (const answer of await prepaid.onAll(credentials)) expectRow(answer, 'openai', REVOKED)
    expect(prepaid.spentOf('reborn')).toBe(spent)
  })

  it('stays so with the annotation of another account', async () => {
    await prepaid.applyAccount('reborn', {}, { 'headgate.dev/reopen-books': 'new-' })
    await prepaid.account('bystander')
    await prepaid.stack.untilCondition('Account', 'reborn', 'Accepted', { status: 'False', reason: 'NameUsed' })
    for (const answer of await prepaid.onAll(credentials)) expectRow(answer, 'openai', REVOKED)
  })

  it('has the same balance and working keys once its annotation names the former one', async () => {
    await prepaid.applyAccount('reborn', {}, { 'headgate.dev/reopen-books': former })
    await prepaid.untilBalance('reborn', prepaid.creditedTo('reborn') - prepaid.spentOf('reborn'))
    await prepaid.untilAll(credentials, 200)
    await prepaid.stack.untilCondition('Account', 'reborn', 'Ready')
    await prepaid.stack.untilCondition('ApiKey', 'reborn-0', 'Ready')
  })
})

describe('amounts', () => {
  /** The largest amount of a Credit, micro-units. */
  const LARGEST = 999_999_999_999_999n
  const COUNT = 20

  it('add up exactly beyond 2^53, to the last micro-unit, also in `headgate balance`', async () => {
    await prepaid.account('rich')
    await atOnce(numbered('rich', COUNT), (id) => prepaid.pay(id, 'rich', '999999999.999999'))
    await prepaid.pay('rich-least', 'rich', '-0.000001')
    const sum = BigInt(COUNT) * LARGEST - 1n
    expect(sum).toBeGreaterThan(2n ** 54n)
    await prepaid.untilBalance('rich', sum)
    expect(await headgate('balance', 'rich')).toBe('19999999999.999979 EUR\n')
  })

  it('decide on the last micro-unit: below zero nothing runs, and one micro-unit is no used-up balance, but too little for a call', async () => {
    const credentials = await prepaid.keys('rich', 1)
    await prepaid.untilAll(credentials, 200)
    await prepaid.untilExact('rich')
    await atOnce(numbered('poor', COUNT), (id) => prepaid.pay(id, 'rich', '-999999999.999999'))
    const debt = prepaid.spentOf('rich') - prepaid.creditedTo('rich')
    expect(debt).toBeGreaterThan(0n)
    await prepaid.untilBalance('rich', -debt)
    expect(await headgate('balance', 'rich')).toBe(`${amountOf(-debt)} EUR\n`)
    const untilRow = (row: ExpectedRow): Promise<void> =>
      eventually(async () => {
        for (const answer of await prepaid.onAll(credentials)) expectRow(answer, 'openai', row)
      })
    await untilRow(BALANCE.exhausted)
    await prepaid.pay('rich-even', 'rich', amountOf(debt))
    await prepaid.untilBalance('rich', 0n)
    await untilRow(BALANCE.exhausted)
    await prepaid.pay('rich-more', 'rich', '0.000001')
    await prepaid.untilBalance('rich', 1n)
    await untilRow(BALANCE.tooSmall)
  })

  /** `headgate` of this build, as an administrator runs it. */
  async function headgate(...args: string[]): Promise<string> {
    const env = { ...process.env, PATH: `${binFolder()}:${process.env.PATH}`, KUBECONFIG: prepaid.stack.site.plane.adminKubeconfig }
    return (await promisify(execFile)(process.execPath, [join(lab.folder, 'dist/headgate.js'), ...args], { env })).stdout
  }
})

describe('a forged count in Redis', () => {
  const FORGED = 1_000_000
  let credentials: string[]
  let key: string
  let before: Record<string, string>

  beforeAll(async () => {
    credentials = await opened('forged', '5', 3)
    await prepaid.untilReported()
    await prepaid.untilExact('forged')
    key = await keyOf('forged')
  })

  /** Adds spend of a process that does not exist. */
  async function forge(micros: number): Promise<void> {
    before = await intruder.hgetall(key)
    const field = `c:${before['n']}:forged`
    await intruder.hset(key, 's', String(Number(before['s']) + micros - Number(before[field] ?? 0)), field, String(micros))
  }

  it.each([
    ['zero', async (fields: readonly string[]) => intruder.hset(key, ...fields.flatMap((field) => [field, '0']))],
    ['deleted', async (fields: readonly string[]) => intruder.hdel(key, ...fields)],
    ['closed periods with a small sum', async () => intruder.hset(key, 'T', '7', 'n', '9', 'bh', '0', 'bl', '1')],
  ])('that is too low is soon gone, and comes back from the books: %s', async (_, lower) => {
    before = await intruder.hgetall(key)
    await lower(['s', ...Object.keys(before).filter((field) => field.startsWith('c:'))])
    const startedMs = performance.now()
    const spend = (balance: Readonly<Record<string, string>>): Record<string, string> =>
      Object.fromEntries(Object.entries(balance).filter(([field]) => /^(T|s|bh|bl|c:.*)$/.test(field)))
    await eventually(async () => {
      const found = spend(await intruder.hgetall(key))
      if (found['T'] !== undefined) expect(found).toEqual(spend(before)) // a balance without T grants nothing
    })
    const tookMs = Math.round(performance.now() - startedMs)
    process.stdout.write(`a forged count was gone after ${tookMs} ms\n`)
    await eventually(async () => expect(spend(await intruder.hgetall(key))).toEqual(spend(before)))
    await prepaid.untilAll(credentials, 200)
    await prepaid.untilReported()
    await prepaid.untilExact('forged')
  })

  it('that was too low is reported by an Event of the account', async () => {
    const { uid } = (await prepaid.accountObject('forged')).metadata
    await eventually(async () => expect(await eventReasons(prepaid.stack, 'default', uid)).toContain('SpendRestored'))
  })

  it('that is too high counts as spend, which a Credit of type Adjustment gives back', async () => {
    await forge(FORGED)
    await prepaid.untilExact('forged', BigInt(FORGED))
    await prepaid.pay('forged-back', 'forged', '1')
    await prepaid.untilExact('forged', BigInt(FORGED))
    await prepaid.untilAll(credentials, 200)
    await waitFor('the calls to be reported', async () => {
      const { s } = await intruder.hgetall(key)
      return BigInt(s ?? 0) === prepaid.spentOf('forged') + BigInt(FORGED)
    })
  })

  it('beyond what the Credits could pay stops the keys, and is not believed by the books', async () => {
    await forge(10 ** 12)
    await prepaid.untilAll(credentials, 402)
    await prepaid.untilExact('forged', BigInt(FORGED))
    await prepaid.stack.redis.admin.hset(key, before)
    await prepaid.untilAll(credentials, 200)
    await prepaid.untilExact('forged', BigInt(FORGED))
  })

  it('is all that the user of the gateways can write: records, which have the sum of the Credits, are out of its reach', async () => {
    const { admin } = prepaid.stack.redis
    const [records = ''] = await admin.keys('hg:{proj}:*:accounts')
    const [uid = '', text = ''] = Object.entries(await admin.hgetall(records))[0] ?? []
    expect(JSON.parse(text)).toHaveProperty('balance.credits')
    await expect(intruder.hset(records, uid, text)).rejects.toThrow(/NOPERM/)
    await expect(intruder.xadd('hg:{proj}:log', '*', 'a', 'b')).rejects.toThrow(/NOPERM/)
  })
})

describe('a Redis that has lost everything', () => {
  it('lets no prepaid key spend for some seconds, and then all with the same balance', async () => {
    const credentials = await opened('flushed', '3', 3)
    await prepaid.untilExact('flushed')
    await prepaid.stack.redis.admin.flushall()
    const startedMs = performance.now()
    const refused: Answer[] = []
    await atOnce(prepaid.gateways, async (gateway) => {
      for (let turn = 0, isRefused = false; ; turn += 1) {
        const answer = await prepaid.call(gateway, credentials[turn % 3] ?? '')
        expect([200, 503], answer.text).toContain(answer.status)
        if (answer.status === 503) refused.push(answer)
        else if (isRefused) return
        isRefused ||= answer.status === 503
        await sleep(20)
      }
    })
    await prepaid.untilAll(credentials, 200)
    const tookMs = Math.round(performance.now() - startedMs)
    process.stdout.write(`prepaid keys worked ${tookMs} ms after FLUSHALL, and ${refused.length} calls got 503\n`)
    for (const answer of refused) expectRow(answer, 'openai', LIMITS_UNAVAILABLE)
    await prepaid.untilExact('flushed')
  })

  it('changes no other balance', async () => {
    await prepaid.untilExact('reborn')
    await prepaid.untilExact('rich')
    await prepaid.untilExact('forged', 1_000_000n)
  })
})
