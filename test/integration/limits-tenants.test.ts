/**
 * One tenant has limits and budgets by the thousand, and another tenant notices nothing. The other tenant's limit holds, its calls are answered,
 * its deleted keys are refused, and its spend is durable. Sizes: see `sizes.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { ask } from '../support/ask.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import { CHART_HEAP } from '../support/chart-operator.ts'
import { durableSpend } from '../support/durable-bytes.ts'
import { untilEveryGateway } from '../support/gateway-answers.ts'
import { conditionOf, objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { OtherTenant } from '../support/other-tenant.ts'
import { sized, timeLimit } from '../support/sizes.ts'
import type { Stack } from '../support/stack.ts'
import { type SteadyAnswer, SteadyCalls } from '../support/steady-calls.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const GROUP = 'headgate.dev/v1alpha1'
const [OTHERS, CHURN, EDITS, PRICES] = ['limited-others', 'limited-churn', 'limited-edits', 'limited-prices'] as const
const MANY_KEYS = sized(500, 5_000)
const BUDGETED_KEYS = sized(250, 2_000)
const PRICED_KEYS = sized(200, 1_000)
/** Limit of the other tenant, far below the rate of its calls. */
const REQUESTS_PER_MINUTE = 60
const MINUTE_MS = 60_000
/** A saturated limit is used by at least 0.97, in windows of 62 s at worst; a call of the load may wait for a processor besides. */
const [MIN_USE, LONGEST_WINDOW_MS] = [0.9, 62_000]
const HOT_LOOP_MS = sized(20_000, 60_000)
const EDITORS = 8
const MODEL = 'priced'
const PRICING = { inputPerMillion: '1', outputPerMillion: '1' }
const LIFE = { name: 'life', amount: '900000', unit: 'Currency', window: 'Lifetime' }

const lab = openLab()
let stack: Stack
let others: OtherTenant
let server: StubModel
let deletions = 0

beforeAll(async () => {
  const operatorEnv = { ...CHART_HEAP, MAX_API_KEYS_PER_NAMESPACE: String(Math.max(2_000, MANY_KEYS)) }
  stack = await lab.stack({ gateways: 2, namespaces: [OTHERS, CHURN, EDITS, PRICES], operatorEnv }, await lab.ownControlPlane())
  server = await startStubModel({ host: lab.address.ip })
  others = await OtherTenant.settle(lab, stack, OTHERS)
})
afterAll(async () => {
  await others.close()
  await server.close()
})

type Spec = Readonly<Record<string, unknown>>

const urls = (): string[] => stack.gateways.map(({ url }) => url)
const edit = (namespace: string, name: string, spec: Spec): Promise<TestObject> =>
  stack.kube.merge(stack.path('ApiKey', name, namespace), { spec })

async function serve(namespace: string, spec: Spec): Promise<void> {
  const backends = [{ name: 'one', url: server.url, messages: 'Native' }]
  await stack.apply('ServedModel', MODEL, { backends, ...spec }, namespace)
  await stack.untilCondition('ServedModel', MODEL, 'Ready', { namespace })
}

async function create(namespace: string, names: readonly string[], spec: Spec): Promise<string[]> {
  return atOnce(names, async (name) => {
    const object = { apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace }, spec: { models: ['*'], ...spec } }
    return (await stack.kube.create(object)).metadata.uid ?? ''
  })
}

async function untilEveryKey(what: string, namespace: string, holds: (key: TestObject) => boolean): Promise<void> {
  const options = { deadlineMs: timeLimit(240_000), everyMs: sized(1_000, 5_000) } // a list of thousands takes a second of CPU time
  const missing = async (): Promise<number> => (await stack.list('ApiKey', namespace)).filter((key) => !holds(key)).length
  await waitFor(what, async () => (await missing()) === 0, options)
}

const untilReady = (namespace: string): Promise<void> =>
  untilEveryKey('every key to be ready', namespace, (key) => conditionOf(key, 'Ready')?.status === 'True')

/** Asserts from the beginning of some work to its end that the keys of the other tenant, limited ones too, work and end on every gateway. */
async function expectServedDuring(work: Promise<unknown>): Promise<void> {
  const deletion = async (): Promise<void> => {
    const name = `deleted-${deletions++}`
    const credential = await stack.issueKey(name, { limits: { requestsPerMinute: 1_000 }, budgets: [LIFE] }, OTHERS)
    await untilEveryGateway(stack.gateways, credential, 200)
    await stack.kube.remove(stack.path('ApiKey', name, OTHERS))
    await untilEveryGateway(stack.gateways, credential, 401)
  }
  await Promise.all([others.expectServedDuring(work), deletion()])
}

async function callsOf(name: string, spec: Spec): Promise<SteadyCalls> {
  const credential = await stack.issueKey(name, spec, OTHERS)
  const calls = new SteadyCalls(lab, urls(), [{ name, credential, model: others.model }])
  onTestFinished(async () => void (await calls.stop()))
  return calls
}

describe(`${MANY_KEYS} limited keys of one namespace`, () => {
  const names = numbered('many', MANY_KEYS)
  const spec = { limits: { requestsPerMinute: 100, maxConcurrentRequests: 4 }, budgets: [LIFE] }

  it(
    'are created, used, edited and deleted: the limit of another tenant holds, its calls are answered, and Redis holds nothing of the keys afterwards',
    async () => {
      await serve(CHURN, { pricing: PRICING, maxOutputTokens: 64 })
      const limited = await callsOf('limited', { limits: { requestsPerMinute: REQUESTS_PER_MINUTE } })
      const ample = await callsOf('ample', { limits: { requestsPerMinute: 1_000_000 }, onStoreUnavailable: 'LocalShare' })
      const started = performance.now()

      const creating = create(CHURN, names, spec)
      await expectServedDuring(Promise.all([creating, creating.then(() => untilReady(CHURN))]))
      await useSome()
      const lowered = { limits: { requestsPerMinute: 50 }, budgets: [{ ...LIFE, amount: '800000' }] }
      const editing = atOnce(names, (name) => edit(CHURN, name, lowered)).then(() => untilReady(CHURN))
      await expectServedDuring(editing)
      await useSome()
      await expectServedDuring(removeAll())

      await waitFor('a minute of calls', () => performance.now() - started > LONGEST_WINDOW_MS, { deadlineMs: MINUTE_MS + 10_000 })
      expectHeld(limited, started)
      expect(Object.keys(await ample.stop())).toEqual(['ample 200'])
      await expectNothingLeft(new Set(await creating))
      await others.expectServed()
    },
    timeLimit(900_000),
  )

  async function removeAll(): Promise<void> {
    await atOnce(names, (name) => stack.kube.remove(stack.path('ApiKey', name, CHURN)))
    await waitFor('the keys to be deleted', async () => (await stack.list('ApiKey', CHURN)).length === 0, {
      deadlineMs: timeLimit(240_000),
      everyMs: 1_000,
    })
  }

  async function useSome(): Promise<void> {
    const some = names.filter((_, at) => at % 10 === 0)
    const statuses = await atOnce(some, async (name, at) => {
      const credential = await stack.value(name, CHURN)
      return (await ask(lab, urls()[at % 2] ?? '', { credential, model: MODEL })).status
    })
    expect([...new Set(statuses)]).toEqual([200])
  }

  /** A slow Redis, as on a busy machine, makes the limit unavailable for some calls. */
  function expectHeld({ answers, counts }: SteadyCalls, started: number): void {
    const windows = Math.floor((performance.now() - started) / LONGEST_WINDOW_MS)
    const { 'limited 200': admitted = 0, 'limited 429': refused = 0, 'limited 503': _unavailable, ...rest } = counts
    expect(rest).toEqual({})
    expect(refused).toBeGreaterThan(0)
    expect(mostAdmitted(answers)).toBeLessThanOrEqual(REQUESTS_PER_MINUTE)
    expect(admitted).toBeGreaterThanOrEqual(MIN_USE * REQUESTS_PER_MINUTE * windows)
  }

  /** Maximum number of calls that were certainly admitted within one minute: sent after its beginning, and answered before its end. */
  function mostAdmitted(answers: readonly SteadyAnswer[]): number {
    const admitted = answers.filter(({ status }) => status === 200)
    const within = (fromMs: number): number =>
      admitted.filter(({ sentMs, answeredMs }) => sentMs >= fromMs && answeredMs < fromMs + MINUTE_MS).length
    return Math.max(0, ...admitted.map(({ sentMs }) => within(sentMs)))
  }

  async function expectNothingLeft(uids: ReadonlySet<string>): Promise<void> {
    const { admin } = stack.redis
    const left = async (): Promise<string[]> => {
      const subjects = (await admin.keys('hg:l:*')).flatMap((key) => /\{(.+)\}/.exec(key)?.[1] ?? [])
      const epoch = await admin.hget('hg:{proj}:meta', 'epoch')
      const projected = await admin.hkeys(`hg:{proj}:${epoch}:keys`)
      const settled = await admin.smembers('hg:l:settled')
      return [...subjects, ...projected, ...settled, ...(await durableSpend(stack)).keys()].filter((uid) => uids.has(uid))
    }
    let last: string[] = []
    const isEmpty = async (): Promise<boolean> => (last = await left()).length === 0
    await waitFor('nothing to be left of them', isEmpty, { deadlineMs: 180_000, everyMs: 1_000 }).catch(() => expect(last).toEqual([]))
  }
})

describe(`${BUDGETED_KEYS} keys with four budgets each, and their amounts in a loop of edits`, () => {
  const names = numbered('rich', BUDGETED_KEYS)
  const windows = ['Lifetime', 'Day', 'Week', 'Month']
  const budgets = (amount: number): object[] =>
    windows.map((window, at) => ({ name: `b${at}`, amount: String(amount), unit: at % 2 === 0 ? 'Currency' : 'Tokens', window }))

  it(
    'the deleted keys of another tenant are refused, and its spend becomes durable',
    async () => {
      await create(EDITS, names, { budgets: budgets(1_000) })
      await untilReady(EDITS)
      const { pid } = stack.operator.process
      const budget = { name: 'tokens', amount: '900000000', unit: 'Tokens', window: 'Lifetime' }
      const spending = await callsOf('spending', { budgets: [budget], onStoreUnavailable: 'LocalShare' })
      const { metadata } = (await stack.kube.get(stack.path('ApiKey', 'spending', OTHERS))) ?? {}
      const loop = new HotLoop()
      onTestFinished(async () => void (await loop.stop()))
      await expectServedDuring(expectDurable(spending, metadata?.uid ?? ''))
      expect(await loop.stop(), 'edits').toBeGreaterThan(0)
      expect(Object.keys(await spending.stop())).toEqual(['spending 200'])
      await expectLastEdit()
      expect(stack.operator.process.pid).toBe(pid)
    },
    timeLimit(600_000),
  )

  /** Raises and lowers the amounts of all keys as fast as the API server accepts the edits. */
  class HotLoop {
    #edits = 0
    #isOver = false
    readonly #loops = Array.from({ length: EDITORS }, (_, at) => this.#edit(at)) // the last field, since the loops start at once

    async stop(): Promise<number> {
      this.#isOver = true
      await Promise.all(this.#loops)
      return this.#edits
    }

    async #edit(editor: number): Promise<void> {
      for (let at = editor; !this.#isOver; at += EDITORS) {
        await edit(EDITS, names[at % names.length] ?? '', { budgets: budgets(1_000 + (at % 7)) })
        this.#edits += 1
      }
    }
  }

  async function expectDurable({ answers }: SteadyCalls, uid: string): Promise<void> {
    const untilMs = performance.now() + HOT_LOOP_MS
    while (performance.now() < untilMs) {
      const spent = answers.reduce((sum, { status, text }) => sum + (status === 200 ? tokensOf(text) : 0), 0)
      const durable = async (): Promise<number> =>
        [...((await durableSpend(stack)).get(uid)?.spent.values() ?? [])].reduce((sum, one) => sum + one, 0)
      await eventually(async () => expect(await durable()).toBeGreaterThanOrEqual(spent), { everyMs: 500 })
      await sleep(1_000)
    }
  }

  function tokensOf(text: string): number {
    return (JSON.parse(text) as { usage: { total_tokens: number } }).usage.total_tokens
  }

  async function expectLastEdit(): Promise<void> {
    const [name = ''] = names
    await edit(EDITS, name, { budgets: budgets(4_321) })
    await stack.untilCondition('ApiKey', name, 'Programmed', { namespace: EDITS })
    const credential = await stack.value(name, EDITS)
    for (const url of urls()) {
      const answer = await fetch(`${url}/v1/key`, { headers: { authorization: `Bearer ${credential}` } })
      expect(lab.record(await answer.text())).toContain('4321')
    }
    const uid = (await stack.kube.get(stack.path('ApiKey', name, EDITS)))?.metadata.uid ?? ''
    expect(await stack.redis.admin.hexists(ledgerKeys('hg', uid).budget, 'seed')).toBe(1)
  }
})

describe(`a model without a price, under ${PRICED_KEYS} keys with budgets of money`, () => {
  const names = numbered('paying', PRICED_KEYS)
  const reasonIs = (reason: string) => (key: TestObject) => conditionOf(key, 'LimitsEnforceable')?.reason === reason

  it(
    'every key reports the missing price in one write, and works again once a price is set; keys of another tenant work and end throughout',
    async () => {
      await serve(PRICES, { pricing: PRICING, maxOutputTokens: 64 })
      await create(PRICES, names, { budgets: [LIFE] })
      await untilReady(PRICES)
      await untilEveryKey('every budget to be enforceable', PRICES, reasonIs('Enforceable'))
      const credential = await stack.value(names[0] ?? '', PRICES)
      await flip({ pricing: null }, 'PriceMissing')
      for (const url of urls()) expect((await ask(lab, url, { credential, model: MODEL })).status).not.toBe(200)
      await flip({ pricing: PRICING }, 'Enforceable')
      for (const url of urls()) expect((await ask(lab, url, { credential, model: MODEL })).status).toBe(200)
    },
    timeLimit(600_000),
  )

  async function flip(change: Spec, reason: string): Promise<void> {
    const writes = await writesDuring(async () => {
      await stack.kube.merge(stack.path('ServedModel', MODEL, PRICES), { spec: change })
      await expectServedDuring(untilEveryKey(`every key to say ${reason}`, PRICES, reasonIs(reason)))
    })
    expect([...writes.values()].filter((count) => count !== 1)).toEqual([])
    expect(writes.size).toBe(PRICED_KEYS)
  }

  async function writesDuring(work: () => Promise<void>): Promise<ReadonlyMap<string, number>> {
    const writes = new Map<string, number>()
    const versions = new Map((await stack.list('ApiKey', PRICES)).map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
    const over = new AbortController()
    onTestFinished(() => over.abort())
    void stack.kube.watch(objectPath(GROUP, 'ApiKey', PRICES), over.signal, ({ object: { metadata } }) => {
      if (versions.get(metadata.name) === metadata.resourceVersion) return
      versions.set(metadata.name, metadata.resourceVersion)
      writes.set(metadata.name, (writes.get(metadata.name) ?? 0) + 1)
    })
    await work()
    over.abort()
    return writes
  }
})
