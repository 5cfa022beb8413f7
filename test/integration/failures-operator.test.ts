/**
 * Pods that do not answer, an API server that dies, operators that are killed or frozen. On a control plane of its own. Issued keys
 * keep working, revoked keys stay revoked, and only the leader writes.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashCredential } from '#contract/values/credential.ts'
import { ask } from '../support/ask.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { conditionsOf, objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { Program } from '../support/program.ts'
import { eventsAbout, heartbeats, projectedKeys, projectionHead } from '../support/projection-view.ts'
import type { Stack } from '../support/stack.ts'
import { SteadyCalls } from '../support/steady-calls.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const MODEL = 'steady'
/** Election times of a leader that keeps its Lease although the API server is down for some seconds. */
const PATIENT = { LEASE_DURATION_SECONDS: '60', LEASE_RENEW_SECONDS: '50', LEASE_RETRY_SECONDS: '0.5' }
const QUICK = { LEASE_DURATION_SECONDS: '6', LEASE_RENEW_SECONDS: '5', LEASE_RETRY_SECONDS: '0.3' }

const lab = openLab()
let plane: ControlPlane
let stack: Stack
let valid = ''
let revoked = ''

const callOn = async (gateway: Program, credential: string): Promise<number> =>
  (await ask(lab, gateway.url, { credential, model: MODEL, fields: { max_tokens: 1 } })).status
const everyGateway = (credential: string, expected: number): Promise<void> =>
  eventually(async () => {
    for (const gateway of stack.gateways) expect(await callOn(gateway, credential)).toBe(expected)
  })
const startCalls = (): SteadyCalls =>
  new SteadyCalls(
    lab,
    stack.gateways.map((gateway) => gateway.url),
    [
      { name: 'valid', credential: valid, model: MODEL },
      { name: 'revoked', credential: revoked, model: MODEL },
    ],
  )

beforeAll(async () => {
  plane = await lab.ownControlPlane()
  stack = await lab.stack({ gateways: 2, operatorEnv: { REVOCATION_WAIT_SECONDS: '3', ...PATIENT } }, plane)
  await stack.serveModel(MODEL)
  valid = await stack.issueKey('valid')
  revoked = await stack.issueKey('revoked')
  await stack.setState('revoked', 'Revoked')
  await everyGateway(revoked, 401)
})

describe('a pod that does not answer', () => {
  it('in the slice without a heartbeat: 2/3 Unconfirmed with the name of the pod; out of the slice: 2/2 without an edit', async () => {
    const pods = stack.gateways.map((gateway) => gateway.spec.pod)
    await stack.publishGateways([...pods, 'ghost-pod'])
    await stack.apply('ApiKey', 'haunted')
    const waiting = await stack.untilCondition('ApiKey', 'haunted', 'Programmed', { status: 'False', reason: 'Unconfirmed' })
    expect(waiting.status.programmed).toMatchObject({ ready: 2, total: 3 })
    const named: unknown = expect.objectContaining({ type: 'Programmed', message: expect.stringContaining('ghost-pod') as unknown })
    expect(waiting.status.conditions).toContainEqual(named)
    await eventually(async () => everyGateway(await stack.value('haunted'), 200)) // one silent pod does not block issuing
    const note: unknown = expect.stringContaining('ghost-pod')
    await eventually(async () => expect(await eventsAbout(stack, 'haunted')).toContainEqual({ reason: 'Unconfirmed', note }))
    const ready = await stack.untilCondition('ApiKey', 'haunted', 'Ready', { status: 'False', reason: 'NotProgrammed' })
    expect(conditionsOf(ready).find(({ type }) => type === 'Ready')?.message).toContain('ghost-pod')
    const lagging = 'headgate_operator_lagging_pods{gateway="ghost-pod"} 1'
    await eventually(async () => expect(await stack.operator.metrics()).toContain(lagging))
    await eventually(async () => expect(stack.operator.process.log()).toMatch(/"pods":\["ghost-pod"\].*keys wait for them/))

    await stack.publishGateways(pods)
    await eventually(async () => expect(await stack.operator.metrics()).not.toContain(lagging))
    const done = await stack.untilCondition('ApiKey', 'haunted', 'Programmed')
    expect(done.status.programmed).toMatchObject({ ready: 2, total: 2 })
    await stack.untilCondition('ApiKey', 'haunted', 'Ready')
  })

  it('frozen during the deletion of a key: the deletion ends in bounded time and names the pod; the thawed pod refuses the key', async () => {
    const [well, frozen] = stack.gateways as [Program, Program]
    const doomed = await stack.issueKey('doomed')
    await everyGateway(doomed, 200)
    await frozen.kill('SIGSTOP')
    try {
      await stack.kube.remove(stack.path('ApiKey', 'doomed'))
      await eventually(async () => expect(await callOn(well, doomed)).toBe(401))
      await eventually(async () => expect(await stack.kube.get(stack.path('ApiKey', 'doomed'))).toBeUndefined())
      const note: unknown = expect.stringContaining(frozen.spec.pod)
      await eventually(async () => expect(await eventsAbout(stack, 'doomed')).toContainEqual({ reason: 'RevocationUnconfirmed', note }))
      expect(JSON.stringify(await eventsAbout(stack, 'doomed'))).not.toContain(well.spec.pod)
    } finally {
      await frozen.kill('SIGCONT')
    }
    await everyGateway(doomed, 401)
    await everyGateway(valid, 200)
  })
})

describe('the API server is killed', () => {
  it('keys keep working while it is down, and changes take effect once it is back, without a restart of the operator', async () => {
    const { pid } = stack.operator.process
    const calls = startCalls()
    plane.signal('kube-apiserver', 'SIGKILL')
    await waitFor('the operator to notice', () => /API server|ECONNREFUSED|cannot renew/.test(stack.operator.process.log()))
    await waitFor('calls to go on', () => (calls.counts['valid 200'] ?? 0) > 20)
    await plane.restart('kube-apiserver')
    await eventually(async () => void (await stack.setState('haunted', 'Suspended')))
    await everyGateway(await stack.value('haunted'), 401)
    await everyGateway(await stack.issueKey('after-restart'), 200)
    expect(stack.operator.process.pid).toBe(pid)
    const counts = await calls.stop()
    expect(Object.keys(counts)).toEqual(['revoked 401', 'valid 200'])
  })
})

describe('the operator is killed', () => {
  it('keys work, an expiry takes effect and revocations hold; changes made during the outage take effect afterwards', async () => {
    const [brief, later] = [await stack.issueKey('brief'), await stack.issueKey('suspended-later')]
    await everyGateway(brief, 200)
    await stack.kube.merge(stack.path('ApiKey', 'brief'), { spec: { expirationTime: new Date(Date.now() + 15_000).toISOString() } })
    await stack.untilCondition('ApiKey', 'brief', 'Programmed')
    const calls = startCalls()
    await stack.operator.kill('SIGKILL')
    await stack.setState('suspended-later', 'Suspended')
    await stack.apply('ApiKey', 'applied-meanwhile')
    for (const gateway of stack.gateways) {
      const refusal = await waitFor('the key to expire', async () => {
        const answer = await ask(lab, gateway.url, { credential: brief, model: MODEL })
        return answer.status === 401 && answer.text
      })
      expect(refusal).toContain('Authentication Error: API key expired')
    }
    await everyGateway(later, 200)
    expect(Object.keys(await calls.stop())).toEqual(['revoked 401', 'valid 200'])
    await takeLease()
    await stack.operator.start(QUICK)
    await everyGateway(later, 401)
    await stack.untilCondition('ApiKey', 'applied-meanwhile', 'Ready')
    await everyGateway(brief, 401)
  })
})

describe('two operators', () => {
  let first: Program
  let second: Program
  /** Every value that a Secret ever held, by Secret name. */
  let values: ReadonlyMap<string, ReadonlySet<string>>
  const watching = new AbortController()

  beforeAll(async () => {
    first = stack.operator
    second = await stack.addOperator({ start: false })
    await second.start(QUICK)
    values = stack.values(watching.signal)
  })
  afterAll(() => watching.abort())

  it('the standby is ready, takes over after SIGKILL of the leader, and the fence rises', async () => {
    const before = await projectionHead(stack)
    expect(await stack.holder()).toContain(first.spec.pod)
    await first.kill('SIGKILL')
    await stack.apply('ApiKey', 'by-the-second')
    await stack.untilCondition('ApiKey', 'by-the-second', 'Ready')
    expect(await stack.holder()).toContain(second.spec.pod)
    const after = await projectionHead(stack)
    expect(after.fence).toBeGreaterThan(before.fence)
    expect([after.epoch, after.revision]).toEqual([before.epoch, before.revision + 1]) // one revision for the new key: the take-over itself rewrote nothing
    await everyGateway(await stack.value('by-the-second'), 200)
    await everyGateway(revoked, 401)
  })

  it('a leader frozen past its Lease exits after its thaw, and no write of it takes effect', async () => {
    await first.start(QUICK) // as a standby
    const before = await projectionHead(stack)
    await stack.apply('ApiKey', 'half-done') // the leader is frozen in the middle of its work
    await second.kill('SIGSTOP')
    await waitFor('the other one to lead', async () => (await stack.holder()).includes(first.spec.pod))
    await stack.untilCondition('ApiKey', 'half-done', 'Ready')
    await stack.setState('half-done', 'Suspended')
    await stack.untilCondition('ApiKey', 'half-done', 'Ready', { status: 'False', reason: 'Suspended' })
    const value = await stack.value('half-done')
    const settled = await projectionHead(stack)
    await second.kill('SIGCONT')
    const { code } = await second.process.ended
    expect(code).toBe(1)
    expect(second.process.log()).toMatch(
      /^headgate-operator: (leadership was lost: .+; a standby takes over|a newer leader \(fence \d+\) .+)$/m,
    )
    expect(settled.fence).toBeGreaterThan(before.fence)
    expect(await projectionHead(stack)).toEqual(settled)
    expect([...(values.get('half-done') ?? [])]).toEqual([value])
    const record = (await projectedKeys(stack)).find(({ name }) => name === 'half-done')
    expect([record?.state, record?.verifiers.map((verifier) => verifier.hash)]).toEqual(['Suspended', [hashCredential(value)]])
    await everyGateway(value, 401)
    for (const { epoch } of (await heartbeats(stack)).values()) expect(epoch).toBe(settled.epoch)
  })
})

/** Frees the Lease of a dead leader with PATIENT times, as its expiry would. */
async function takeLease(): Promise<void> {
  const path = objectPath('coordination.k8s.io/v1', 'Lease', stack.operatorNamespace, 'headgate-operator')
  await stack.kube.merge(path, { spec: { holderIdentity: '', leaseDurationSeconds: 1 } })
}
