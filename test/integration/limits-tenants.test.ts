/**
 * One tenant has limits and budgets by the thousand, and another tenant notices nothing. The other tenant's limit holds, its calls are answered,
 * its keys end in time, and its spend is durable in time. Sizes: see `sizes.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { ask } from '../support/ask.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import { CHART_HEAP, CHART_LEASE } from '../support/chart-operator.ts'
import { durableSpend } from '../support/durable-spend.ts'
import { untilEveryGateway } from '../support/gateway-answers.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab, type Lab } from '../support/lab.ts'
import { OtherTenant } from '../support/other-tenant.ts'
import { sized, timeLimit } from '../support/sizes.ts'
import type { Stack } from '../support/stack.ts'
import { TENANT } from '../support/tenant-protocol.ts'
import { mostAdmitted, statusCounts, TimedCalls } from '../support/timed-calls.ts'
import { waitFor } from '../support/wait-for.ts'

const GROUP = 'headgate.dev/v1alpha1'
const [OTHERS, CHURN, EDITS, PRICES] = ['limited-others', 'limited-churn', 'limited-edits', 'limited-prices'] as const
const MANY_KEYS = sized(500, 5_000)
const BUDGETED_KEYS = sized(250, 2_000)
const PRICED_KEYS = sized(200, 1_000)
/** Limit of the other tenant, far below the rate of its calls. */
const REQUESTS_PER_MINUTE = 60
const MINUTE_MS = 60_000
/** A saturated limit is used by at least 0.97, in windows of 62 s at worst; a call of the load may wait for a processor besides. */
const [LEAST_USE, LONGEST_WINDOW_MS] = [0.9, 62_000]
/** A revocation may take twice the usual time, or this time if that is longer, ms. */
const FLOOR_MS = 5_000
/** Spend is durable within this, s. */
const DURABLE_SECONDS = 10
/** Largest share of calls that a slow Redis may refuse. No call is refused if Redis answers within ms, which a busy machine does not ensure. */
const MOST_UNAVAILABLE = 0.02
const HOT_LOOP_MS = sized(20_000, 60_000)
const EDITORS = 8
const MODEL = 'priced'
const PRICING = { inputPerMillion: '1', outputPerMillion: '1' }
const LIFE = { name: 'life', amount: '900000', unit: 'Currency', window: 'Lifetime' }

let lab: Lab
let stack: Stack
let others: OtherTenant
let server: StubModel
/** ms from the deletion of a key of the other tenant until every gateway refuses it, before any storm: the worst of a few. */
let usualMs = 0

beforeAll(async () => {
  lab = openLab()
  const operatorEnv = { ...CHART_LEASE, ...CHART_HEAP, MAX_API_KEYS_PER_NAMESPACE: String(Math.max(2_000, MANY_KEYS)) }
  stack = await lab.stack({ gateways: 2, namespaces: [OTHERS, CHURN, EDITS, PRICES], operatorEnv }, await lab.ownControlPlane())
  server = await startStubModel({ host: lab.address.ip })
  others = await OtherTenant.settle(lab, stack, OTHERS)
  usualMs = await worstRevocation('usual')
})
afterAll(async () => {
  await others.close()
  await server.close()
  await lab.close()
})

type Spec = Readonly<Record<string, unknown>>

const urls = (): string[] => stack.gateways.map(({ url }) => url)
const edit = (namespace: string, name: string, spec: Spec): Promise<TestObject> =>
  stack.kube.merge(stack.path('ApiKey', name, namespace), { spec })
const keysOf = (namespace: string): Promise<TestObject[]> => stack.kube.list(objectPath(GROUP, 'ApiKey', namespace))

async function serve(namespace: string, spec: Spec): Promise<void> {
  const backends = [{ name: 'one', url: server.url, messages: 'Native' }]
  await stack.kube.apply({ apiVersion: GROUP, kind: 'ServedModel', metadata: { name: MODEL, namespace }, spec: { backends, ...spec } })
  await stack.untilCondition('ServedModel', MODEL, 'Ready', { namespace })
}

/** @returns their uids */
async function create(namespace: string, names: readonly string[], spec: Spec): Promise<string[]> {
  return atOnce(names, async (name) => {
    const object = { apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace }, spec: { models: ['*'], ...spec } }
    return (await stack.kube.create(object)).metadata.uid ?? ''
  })
}

function condition({ metadata, status }: TestObject, type: string): { readonly status: string; readonly reason: string } | undefined {
  const conditions = (status?.conditions ?? []) as readonly { type: string; status: string; reason: string; observedGeneration: number }[]
  return conditions.find((one) => one.type === type && one.observedGeneration === metadata['generation'])
}

async function untilEveryKey(what: string, namespace: string, holds: (key: TestObject) => boolean): Promise<void> {
  const options = { deadlineMs: timeLimit(240_000), everyMs: sized(1_000, 5_000) } // a list of thousands takes a second of CPU time
  const missing = async (): Promise<number> => (await keysOf(namespace)).filter((key) => !holds(key)).length
  await waitFor(what, async () => (await missing()) === 0, options)
}

const untilReady = (namespace: string): Promise<void> =>
  untilEveryKey('every key to be ready', namespace, (key) => condition(key, 'Ready')?.status === 'True')

/** Deletes a limited key of the other tenant. @returns ms from the answer of the API server until both gateways refuse it */
async function revocation(name: string): Promise<number> {
  const credential = await stack.issueKey(name, { limits: { requestsPerMinute: 1_000 }, budgets: [LIFE] }, OTHERS)
  await untilEveryGateway(stack.gateways, credential, 200)
  await stack.kube.remove(stack.path('ApiKey', name, OTHERS))
  return untilEveryGateway(stack.gateways, credential, 401)
}

async function worstRevocation(prefix: string): Promise<number> {
  let worst = 0
  for (const name of numbered(prefix, 3)) worst = Math.max(worst, await revocation(name))
  return worst
}

/** Asserts that the other tenant's keys are issued, suspended and deleted, and its Credential is rotated, in time during a storm. */
async function expectServed(storm: string, prefix: string): Promise<void> {
  await others.expectServed(storm)
  const ms = await worstRevocation(prefix)
  process.stderr.write(`another tenant: a deleted key works on for ${ms.toFixed(0)} ms during ${storm}, usually ${usualMs.toFixed(0)} ms\n`)
  expect(ms, storm).toBeLessThan(Math.max(2 * usualMs, FLOOR_MS))
}

/** Repeats `expectServed` from the beginning of a storm to its end. */
async function expectServedDuring(work: Promise<unknown>, storm: string, prefix: string): Promise<void> {
  let isOver = false
  const over = work.finally(() => (isOver = true))
  over.catch(() => undefined) // awaited below, after the rounds
  for (let round = 0; round === 0 || !isOver; round += 1) await expectServed(storm, `${prefix}-${round}`)
  await over
}

/** Calls of a new key of the other tenant, over both gateways. */
async function callsOf(name: string, spec: Spec): Promise<TimedCalls> {
  const credential = await stack.issueKey(name, spec, OTHERS)
  const calls = new TimedCalls(lab, urls(), { credential, model: TENANT.model })
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
      await expectServedDuring(Promise.all([creating, creating.then(() => untilReady(CHURN))]), `${MANY_KEYS} new keys`, 'during-new')
      await useSome()
      const lowered = { limits: { requestsPerMinute: 50 }, budgets: [{ ...LIFE, amount: '800000' }] }
      const editing = atOnce(names, (name) => edit(CHURN, name, lowered)).then(() => untilReady(CHURN))
      await expectServedDuring(editing, `${MANY_KEYS} edits`, 'during-edits')
      await useSome()
      await expectServedDuring(removeAll(), `${MANY_KEYS} deletions`, 'during-deletions')

      await waitFor('a minute of calls', () => performance.now() - started > LONGEST_WINDOW_MS, { deadlineMs: MINUTE_MS + 10_000 })
      expectHeld(limited, started)
      expect(Object.keys(statusCounts(await ample.stop()))).toEqual(['200'])
      await expectNothingLeft(new Set(await creating))
      await others.expectUnharmed({ rounds: 1 })
    },
    timeLimit(900_000),
  )

  async function removeAll(): Promise<void> {
    await atOnce(names, (name) => stack.kube.remove(stack.path('ApiKey', name, CHURN)))
    await waitFor('the keys to be deleted', async () => (await keysOf(CHURN)).length === 0, {
      deadlineMs: timeLimit(240_000),
      everyMs: 1_000,
    })
  }

  /** Calls some of the keys, so that Redis has rates, permits, counters and spend of these keys. */
  async function useSome(): Promise<void> {
    const some = names.filter((_, at) => at % 10 === 0)
    const statuses = await atOnce(some, async (name, at) => {
      const { SERVICE_API_KEY: credential = '' } = await stack.secret(name, CHURN)
      return (await ask(lab, urls()[at % 2] ?? '', { credential, model: MODEL })).status
    })
    expect([...new Set(statuses)]).toEqual([200])
  }

  function expectHeld({ answers }: TimedCalls, started: number): void {
    const { 200: admitted = 0, 429: refused = 0, 503: unavailable = 0, ...rest } = statusCounts(answers)
    const windows = Math.floor((performance.now() - started) / LONGEST_WINDOW_MS)
    const most = mostAdmitted(answers, MINUTE_MS)
    process.stderr.write(
      `a limit of ${REQUESTS_PER_MINUTE}: most admitted in a minute ${most}, in ${windows} windows ${admitted}, refused ${refused}, unavailable ${unavailable}\n`,
    )
    expect(rest).toEqual({})
    expect(unavailable / answers.length).toBeLessThan(MOST_UNAVAILABLE)
    expect(refused).toBeGreaterThan(0)
    expect(most).toBeLessThanOrEqual(REQUESTS_PER_MINUTE)
    expect(admitted).toBeGreaterThanOrEqual(LEAST_USE * REQUESTS_PER_MINUTE * windows)
  }

  /** Asserts that the ledger, the projection and the Secrets of durable spend hold nothing of these keys. */
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
    'the deleted keys of another tenant are refused in time, and its spend is durable in time',
    async () => {
      await create(EDITS, names, { budgets: budgets(1_000) })
      await untilReady(EDITS)
      const { pid } = stack.operator.process
      const budget = { name: 'tokens', amount: '900000000', unit: 'Tokens', window: 'Lifetime' }
      const spending = await callsOf('spending', { budgets: [budget], onStoreUnavailable: 'LocalShare' })
      const { metadata } = (await stack.kube.get(stack.path('ApiKey', 'spending', OTHERS))) ?? {}
      const loop = new HotLoop()
      onTestFinished(async () => void (await loop.stop()))
      const looking = checkpointAges(spending, metadata?.uid ?? '')
      await expectServedDuring(looking, 'a loop of edits', 'during-loop')
      const ages = await looking
      process.stderr.write(
        `${await loop.stop()} edits of amounts in ${((performance.now() - loop.startedMs) / 1_000).toFixed(0)} s; age of the checkpoint, s: ${ages.map((age) => age.toFixed(1)).join(' ')}\n`,
      )
      expect(Math.max(...ages)).toBeLessThanOrEqual(DURABLE_SECONDS)
      expect(Object.keys(statusCounts(await spending.stop()))).toEqual(['200'])
      await expectLastEdit()
      expect(stack.operator.process.pid).toBe(pid)
    },
    timeLimit(600_000),
  )

  /** Raises and lowers the amounts of all keys as fast as the API server accepts the edits. */
  class HotLoop {
    readonly startedMs = performance.now()
    #edits = 0
    #isOver = false
    readonly #loops = Array.from({ length: EDITORS }, (_, at) => this.#edit(at)) // the last field, since the loops start at once

    /** @returns how many edits there were */
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

  /** Ages of the checkpoint, s: the age that the operator reports, and the age of the oldest answer that the Secrets lack. */
  async function checkpointAges(spending: TimedCalls, uid: string): Promise<number[]> {
    const ages: number[] = []
    const started = performance.now()
    while (performance.now() - started < HOT_LOOP_MS) {
      await sleep(1_000)
      const lookedMs = performance.now()
      const durable = [...((await durableSpend(stack)).get(uid)?.spent.values() ?? [0])].reduce((sum, one) => sum + one, 0)
      const missing = spending.answers.filter(({ answeredMs, status }) => status === 200 && spending.tokensBefore(answeredMs) >= durable)
      const oldestMs = Math.min(lookedMs, ...missing.map(({ answeredMs }) => answeredMs))
      ages.push((lookedMs - oldestMs) / 1_000, (await stack.operator.metric('headgate_operator_spend_checkpoint_age_seconds')) ?? Infinity)
    }
    return ages
  }

  async function expectLastEdit(): Promise<void> {
    const [name = ''] = names
    await edit(EDITS, name, { budgets: budgets(4_321) })
    await stack.untilCondition('ApiKey', name, 'Programmed', { namespace: EDITS })
    const { SERVICE_API_KEY: credential = '' } = await stack.secret(name, EDITS)
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
  const reasonIs = (reason: string) => (key: TestObject) => condition(key, 'LimitsEnforceable')?.reason === reason

  it(
    'every key reports the missing price in one write, and works again once a price is set; keys of another tenant end in time throughout',
    async () => {
      await serve(PRICES, { pricing: PRICING, maxOutputTokens: 64 })
      await create(PRICES, names, { budgets: [LIFE] })
      await untilReady(PRICES)
      await untilEveryKey('every budget to be enforceable', PRICES, reasonIs('Enforceable'))
      const { SERVICE_API_KEY: credential = '' } = await stack.secret(names[0] ?? '', PRICES)
      await flip({ pricing: null }, 'PriceMissing', 'during-lost')
      for (const url of urls()) expect((await ask(lab, url, { credential, model: MODEL })).status).not.toBe(200)
      await flip({ pricing: PRICING }, 'Enforceable', 'during-found')
      for (const url of urls()) expect((await ask(lab, url, { credential, model: MODEL })).status).toBe(200)
    },
    timeLimit(600_000),
  )

  async function flip(change: Spec, reason: string, prefix: string): Promise<void> {
    const writes = await writesDuring(async () => {
      await stack.kube.merge(stack.path('ServedModel', MODEL, PRICES), { spec: change })
      const saying = untilEveryKey(`every key to say ${reason}`, PRICES, reasonIs(reason))
      await expectServedDuring(saying, `${PRICED_KEYS} statuses: ${reason}`, prefix)
    })
    expect([...writes.values()].filter((count) => count !== 1)).toEqual([])
    expect(writes.size).toBe(PRICED_KEYS)
  }

  /** @returns number of changes of each key, by name */
  async function writesDuring(work: () => Promise<void>): Promise<ReadonlyMap<string, number>> {
    const writes = new Map<string, number>()
    const versions = new Map((await keysOf(PRICES)).map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
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
