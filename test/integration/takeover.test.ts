/**
 * An operator takes over with an old view of the cluster, with a wrong clock, or without its keyring. No stopped key works again at any time,
 * no good key is refused, and nothing is lost.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AnswerWatch } from '../support/answer-watch.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import { keyringEntries, keyringSecrets } from '../support/durable-bytes.ts'
import { FreezingProxy } from '../support/freezing-proxy.ts'
import { differences, untilEveryGateway } from '../support/gateway-answers.ts'
import { objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { Program } from '../support/program.ts'
import { sized, timeLimit } from '../support/sizes.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const LOST = sized(2_000, 10_000)
/** Time for which a stopped key is watched after a take-over, ms. An operator once trusted an old cache for less than this time. */
const WATCHED_MS = 20_000
const CLOCK_SECONDS = 60

const lab = openLab()

async function untilLeading(stack: Stack, operator: Program): Promise<void> {
  await waitFor(`${operator.spec.pod} to lead`, async () => (await stack.holder()).includes(operator.spec.pod))
}

describe('a standby whose watches were frozen for a while', () => {
  let stack: Stack
  let proxy: FreezingProxy
  beforeAll(async () => {
    stack = await lab.stack({ gateways: 2 })
    proxy = await FreezingProxy.start(stack.site.plane)
  })
  afterAll(() => proxy.close())

  it('takes over without undoing a suspension, a revocation, a deletion or a narrower list, at no time and on no gateway', async () => {
    const stopped = { suspended: '', revoked: '', deleted: '' }
    for (const name of ['suspended', 'revoked', 'deleted'] as const) stopped[name] = await stack.issueKey(name)
    const good = await stack.issueKey('good')
    const first = stack.operator
    await untilLeading(stack, first)
    const second = await stack.addOperator({ apiServer: proxy.url })
    proxy.freeze()
    await stack.setState('suspended', 'Suspended')
    await stack.setState('revoked', 'Revoked')
    await stack.kube.remove(stack.path('ApiKey', 'deleted'))
    for (const credential of Object.values(stopped)) await untilEveryGateway(stack.gateways, credential, 401)
    await eventually(async () => expect(await stack.kube.get(stack.path('ApiKey', 'deleted'))).toBeUndefined())
    await stack.untilCondition('ApiKey', 'revoked', 'Ready', { status: 'False', reason: 'Revoked' })

    const refused = Object.entries(stopped).map(([name, credential]) => ({ name, credential, status: 401 }))
    const watch = new AnswerWatch(() => stack.gateways, [...refused, { name: 'good', credential: good, status: 200 }], 100)
    await first.kill('SIGKILL')
    await untilLeading(stack, second)
    const leadingSince = performance.now()
    const later = await applied(stack, 'later') // the new leader reconciles objects, however old its view is
    await waitFor('some time as a leader', () => performance.now() - leadingSince > WATCHED_MS, {
      deadlineMs: WATCHED_MS * 2,
      everyMs: 250,
    })
    proxy.thaw()
    await later()
    expect(await watch.stop()).toEqual([])
    const values = new Map(Object.entries(stopped))
    expect(await differences(stack.gateways, values, 401)).toEqual([])
    await stack.setState('suspended', 'Active')
    await untilEveryGateway(stack.gateways, stopped.suspended, 200)
    values.delete('suspended')
    expect(await differences(stack.gateways, values, 401)).toEqual([])
  }, 240_000)
})

async function applied(stack: Stack, name: string): Promise<() => Promise<unknown>> {
  await stack.apply('ApiKey', name)
  return () => stack.untilCondition('ApiKey', name, 'Ready', { deadlineMs: 180_000 })
}

describe('a keyring that was deleted', () => {
  it(
    `of ${LOST} keys is recovered, and no good key is refused during the recovery`,
    async () => {
      // all keys are in one namespace, so that one list returns its Secrets
      const operatorEnv = { MAX_API_KEYS_PER_NAMESPACE: String(2 * LOST) }
      const stack = await lab.stack({ gateways: 2, operatorEnv })
      const suspended = await stack.issueKey('suspended')
      await stack.setState('suspended', 'Suspended')
      await untilEveryGateway(stack.gateways, suspended, 401)
      const names = numbered('key', LOST)
      await atOnce(names, (name) => stack.apply('ApiKey', name))
      const secrets = objectPath('v1', 'Secret', stack.namespace)
      await waitFor('every Secret', async () => (await stack.kube.list(secrets)).length > LOST, {
        deadlineMs: timeLimit(400_000),
        everyMs: 1_000,
      })
      const described = async (): Promise<boolean> => {
        const keys = await stack.list('ApiKey')
        return keys.filter(({ status }) => status?.keyID !== undefined).length > LOST
      }
      await waitFor('every status', described, { deadlineMs: timeLimit(120_000), everyMs: 2_000 })
      await waitFor('every entry', async () => (await keyringEntries(stack)).length > LOST, { deadlineMs: 60_000, everyMs: 1_000 })
      const sampled = await Promise.all(
        names.filter((_, i) => i % (LOST / 50) === 0).map(async (name) => ({ name, credential: await stack.value(name), status: 200 })),
      )

      await stack.operator.stop()
      for (const name of await keyringSecrets(stack)) await stack.kube.remove(objectPath('v1', 'Secret', stack.operatorNamespace, name))
      expect(await keyringEntries(stack)).toEqual([])
      const watch = new AnswerWatch(() => stack.gateways, [...sampled, { name: 'suspended', credential: suspended, status: 401 }], 50)
      await stack.operator.launch()
      await untilLeading(stack, stack.operator)
      const count = (): Promise<number> =>
        keyringEntries(stack).then((entries) => new Set(entries.map(({ text }) => (JSON.parse(text) as { uid: string }).uid)).size)
      await waitFor('every entry again', async () => (await count()) > LOST, { deadlineMs: 120_000, everyMs: 200 })
      expect(await watch.stop()).toEqual([])
      await stack.setState('key-0', 'Suspended')
      await untilEveryGateway(stack.gateways, sampled[0]?.credential ?? '', 401)
    },
    timeLimit(900_000),
  )
})

describe('the clock of an operator', () => {
  let stack: Stack
  const waitSeconds = 5
  const shifted = (seconds: number): Record<string, string> => ({
    NODE_OPTIONS: `--import ${join(import.meta.dirname, '../support/shifted-clock.ts')}`,
    CLOCK_SHIFT_MS: String(seconds * 1_000),
  })
  beforeAll(async () => {
    stack = await lab.stack({ gateways: 2, operatorEnv: { REVOCATION_WAIT_SECONDS: String(waitSeconds) } })
    await stack.remove(stack.operator) // gateways need a projection to start; each test starts its own operators
  })

  it.for([CLOCK_SECONDS, -CLOCK_SECONDS])(
    '%i s off: keys are issued, suspended and deleted, and a deletion waits for a silent pod at least for the set time',
    { timeout: 180_000 },
    async (seconds, { onTestFinished }) => {
      const operator = await stack.addOperator({ env: shifted(seconds) })
      onTestFinished(() => stack.remove(operator))
      const good = await stack.issueKey(`good${seconds}`)
      const doomed = await stack.issueKey(`doomed${seconds}`)
      const suspended = await stack.issueKey(`suspended${seconds}`)
      await stack.setState(`suspended${seconds}`, 'Suspended')
      await untilEveryGateway(stack.gateways, suspended, 401)
      const silent = stack.gateways[1]
      await silent?.kill('SIGSTOP')
      const started = performance.now()
      await stack.kube.remove(stack.path('ApiKey', `doomed${seconds}`))
      await waitFor('the deletion to end', async () => (await stack.kube.get(stack.path('ApiKey', `doomed${seconds}`))) === undefined)
      const took = (performance.now() - started) / 1000
      await silent?.kill('SIGCONT')
      expect(took).toBeGreaterThan(waitSeconds * 0.8)
      await untilEveryGateway(stack.gateways, doomed, 401)
      await untilEveryGateway(stack.gateways, good, 200)
    },
  )

  it(
    'differs from the clock of the next operator by two minutes: a take-over revives no stopped key and refuses no good key',
    { timeout: 180_000 },
    async ({ onTestFinished }) => {
      const ahead = await stack.addOperator({ env: shifted(CLOCK_SECONDS) })
      onTestFinished(() => stack.remove(ahead))
      const good = await stack.issueKey('good')
      const brief = await stack.issueKey('brief', { ttlSeconds: 240 })
      const suspended = await stack.issueKey('suspended')
      await stack.setState('suspended', 'Suspended')
      await untilEveryGateway(stack.gateways, suspended, 401)
      const behind = await stack.addOperator({ env: shifted(-CLOCK_SECONDS) })
      onTestFinished(() => stack.remove(behind))
      const expected = [
        { name: 'good', credential: good, status: 200 },
        { name: 'brief', credential: brief, status: 200 },
        { name: 'suspended', credential: suspended, status: 401 },
      ]
      const watch = new AnswerWatch(() => stack.gateways, expected, 60)
      await ahead.kill('SIGKILL')
      await untilLeading(stack, behind)
      await stack.issueKey('by-the-second')
      expect(await watch.stop()).toEqual([])
      const duringRestart = new AnswerWatch(() => stack.gateways, expected, 60)
      await stack.gateway.restart()
      const isOfRestart = (line: string): boolean => line.includes(` ${stack.gateway.spec.pod}: 503 `) // the pod that restarts
      expect(await duringRestart.stop(isOfRestart)).toEqual([])
      for (const { credential, status } of expected) await untilEveryGateway(stack.gateways, credential, status)
      await stack.setState('suspended', 'Active')
      await untilEveryGateway(stack.gateways, suspended, 200)
    },
  )
})
