/**
 * kill -9 of the real operator process at each write of a creation, a suspension and a deletion, to the API server and to Redis: once before
 * the write is applied, and once after the write but before its answer. After every schedule a restart ends in the same state.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashCredential } from '#contract/values/credential.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { type CrashProxy, kubeCrashProxy, redisCrashProxy, WriteGate } from '../support/crash-proxy.ts'
import { untilEveryGateway } from '../support/gateway-answers.ts'
import { objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { projectedKeys } from '../support/projection-view.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/** A killed leader is replaced within about a second. */
const QUICK_LEASE = { LEASE_DURATION_SECONDS: '1', LEASE_RENEW_SECONDS: '0.8', LEASE_RETRY_SECONDS: '0.2' }
/** More writes than any story has. */
const MOST_WRITES = 20
/** Keys that exist before each round of a story: one for each write that the story may have. */
const PREPARED = 8

const lab = openLab()
let stack: Stack
const gate = new WriteGate()
const proxies: CrashProxy[] = []
const watching = new AbortController()
const crashes: string[] = []
/** Every value that a Secret ever held, by Secret name. */
let values: ReadonlyMap<string, ReadonlySet<string>>

beforeAll(async () => {
  const kube = await kubeCrashProxy(lab.plane, gate)
  proxies.push(kube)
  stack = await lab.stack({ gateways: 2, apiServer: kube.url, operatorEnv: QUICK_LEASE, operators: 0, start: false })
  const redis = await redisCrashProxy(stack.redis.ip, stack.redis.port, gate)
  proxies.push(redis)
  await stack.addOperator({ env: { REDIS_URL: redis.url }, start: false })
  await stack.operator.launch()
  void restartWheneverItEnds() // with its short election times it may end before the gateways are ready
  await Promise.all(stack.gateways.map((gateway) => gateway.start()))
  values = stack.values(watching.signal)
})
afterAll(async () => {
  watching.abort()
  for (const proxy of proxies) proxy.close()
})

interface Story {
  readonly name: string
  prepare(key: string): Promise<unknown>
  act(key: string): Promise<unknown>
  check(key: string): Promise<void>
}

const apply = (key: string, state = 'Active'): Promise<unknown> => stack.apply('ApiKey', key, { state, models: ['*'] })

const stories: readonly Story[] = [
  {
    name: 'creation',
    prepare: () => Promise.resolve(),
    act: apply,
    check: async (key) => {
      const object = await stack.untilCondition('ApiKey', key, 'Ready')
      const value = await stack.value(key)
      expect([...(values.get(key) ?? [])]).toEqual([value]) // one value per generation, ever
      expect((await recordOf(object.metadata.uid))?.verifiers.map((verifier) => verifier.hash)).toEqual([hashCredential(value)])
      await untilEveryGateway(stack.gateways, value, 200)
    },
  },
  {
    name: 'suspension',
    prepare: (key) => stack.issueKey(key),
    act: (key) => stack.setState(key, 'Suspended'),
    check: async (key) => {
      await stack.untilCondition('ApiKey', key, 'Ready', { status: 'False', reason: 'Suspended' })
      const value = await stack.value(key)
      expect([...(values.get(key) ?? [])]).toEqual([value])
      await untilEveryGateway(stack.gateways, value, 401)
    },
  },
  {
    name: 'deletion',
    prepare: (key) => stack.issueKey(key),
    act: (key) => stack.kube.remove(stack.path('ApiKey', key)),
    check: async (key) => {
      await eventually(async () => expect(await stack.kube.get(stack.path('ApiKey', key))).toBeUndefined())
      for (const value of values.get(key) ?? []) await untilEveryGateway(stack.gateways, value, 401)
      await eventually(async () => expect(await stack.kube.get(objectPath('v1', 'Secret', stack.namespace, key))).toBeUndefined())
    },
  },
]

it.each(stories)(
  '$name: killed before and after each write, the operator ends in the same state',
  async (story) => {
    let schedules = 0
    const killedAt: string[] = []
    for (const when of ['before', 'after'] as const) {
      for (let write = 0; write < (story.name === 'creation' ? MOST_WRITES : PREPARED); write++) {
        const key = `${story.name}-${when}-${write}`
        if (write === 0) await Promise.all(Array.from({ length: PREPARED }, (_, i) => story.prepare(`${story.name}-${when}-${i}`)))
        if (write === 0 || story.name === 'creation') await quiet() // the last creation still has to write its mark
        gate.arm({ write, when }, () => stack.operator.kill('SIGKILL'))
        await story.act(key)
        await story.check(key)
        if (!gate.hasKilled) await quiet()
        const { hasKilled } = gate
        gate.disarm()
        if (!hasKilled) break
        killedAt.push(`${when} ${gate.seen[write]}`)
        schedules += 1
        await leadsAgain()
        await story.check(key)
      }
    }
    process.stdout.write(`crash schedules of ${story.name}: ${schedules}\n`)
    await noOrphans()
    expect(schedules, killedAt.join('\n')).toBeGreaterThanOrEqual(6)
    expect(crashes).toEqual([])
  },
  300_000,
)

/** Starts the operator again, as a kubelet does. A busy machine may lose a Lease of one second; any other exit of the operator is a failure. */
async function restartWheneverItEnds(): Promise<void> {
  for (;;) {
    const { code, signal } = await stack.operator.process.ended
    if (watching.signal.aborted) return
    const lastLine = stack.operator.process.log().trimEnd().split('\n').at(-1) ?? ''
    if (signal !== 'SIGKILL' && !lastLine.includes('leadership was lost')) crashes.push(`exit code ${code}: ${lastLine}`)
    await stack.operator.launch()
  }
}

async function leadsAgain(): Promise<void> {
  await waitFor('the operator to be ready', () => stack.operator.isReady(), { deadlineMs: 30_000 })
}

/** Waits until 2.2 s pass without a write. A mark that waits longer for another write counts as a write of the next schedule. */
async function quiet(): Promise<void> {
  await waitFor(
    'the operator to have nothing left to write',
    async () => {
      const count = gate.seen.length
      await new Promise((resolve) => setTimeout(resolve, 2_200)) // no event announces the absence of a write
      return gate.seen.length === count
    },
    { deadlineMs: 30_000 },
  )
}

async function noOrphans(): Promise<void> {
  await eventually(async () => {
    const keys = await stack.list('ApiKey')
    expect((await projectedKeys(stack)).map((record) => record.uid).sort()).toEqual(keys.map((key) => key.metadata.uid ?? '').sort())
  })
}

async function recordOf(uid: string | undefined): Promise<KeyRecord | undefined> {
  return (await projectedKeys(stack)).find((record) => record.uid === uid)
}
