/**
 * Redis is wiped, killed for half a minute and frozen while calls continue. A failure of Headgate is never a 401 for a valid key, a refused
 * key stays refused, and every program recovers without a restart. `failures-operator` and `failures-backends` test the other parts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { hashCredential, mintCredential } from '#contract/values/credential.ts'
import { ask } from '../support/ask.ts'
import { objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { Program } from '../support/program.ts'
import { eventsAbout, heartbeats, projectedKeys, projectionHead } from '../support/projection-view.ts'
import type { Stack } from '../support/stack.ts'
import { SteadyCalls } from '../support/steady-calls.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const MODEL = 'steady'
const OUTAGE_MS = 30_000

const lab = openLab()
let stack: Stack
const credentials: Record<string, string> = {}
let pids: readonly number[] = []

const callOn = async (gateway: Program, credential: string | undefined): Promise<number> =>
  (await ask(lab, gateway.url, { credential, model: MODEL, fields: { max_tokens: 1 } })).status
const everyGateway = (name: string, expected: number): Promise<void> =>
  eventually(async () => {
    for (const gateway of stack.gateways) expect(await callOn(gateway, credentials[name])).toBe(expected)
  })
const pidsNow = (): number[] => [...stack.operators, ...stack.gateways.slice(0, 2)].map((program) => program.process.pid)
const programmed = async (name: string): Promise<unknown> => (await stack.kube.get(stack.path('ApiKey', name)))?.status.programmed

const startCalls = (): SteadyCalls =>
  new SteadyCalls(
    lab,
    stack.gateways.slice(0, 2).map((gateway) => gateway.url),
    [
      { name: 'valid', credential: credentials['valid'] ?? '', model: MODEL },
      { name: 'refused', credential: credentials['revoked'] ?? '', model: MODEL },
      { name: 'refused', credential: credentials['suspended'] ?? '', model: MODEL, format: 'anthropic' },
      { name: 'deleted', credential: credentials['deleted'] ?? '', model: MODEL },
    ],
  )

/**
 * Only 200 for the working key and only 401 for the others, over enough calls. A pod without Redis cannot distinguish a deleted key, which
 * has no record, from a key that was just issued: such a pod answers 503 (row 24) until Redis is back.
 */
function expectNoFalseAnswer(counts: Readonly<Record<string, number>>, least: number): void {
  const seen = Object.entries(counts).filter(([answer]) => answer !== 'deleted 503')
  expect(
    seen.map(([answer]) => answer),
    JSON.stringify(counts),
  ).toEqual(['deleted 401', 'refused 401', 'valid 200'])
  for (const [, count] of seen) expect(count).toBeGreaterThanOrEqual(least)
}

beforeAll(async () => {
  stack = await lab.stack({ gateways: 2, operatorEnv: { REVOCATION_WAIT_SECONDS: '3' } })
  // `url` and not `service`: the record of a cold start names a Service, and no DNS server runs here
  const backend = { name: 'llama', url: lab.address.modelServer.url, upstreamModel: 'tiny', messages: 'Native' }
  await stack.serveModel(MODEL, { backends: [backend] })
  const names = ['valid', 'revoked', 'suspended', 'deleted', 'suspended-later', 'deleted-later']
  await Promise.all(names.map(async (name) => (credentials[name] = await stack.issueKey(name))))
  await stack.setState('revoked', 'Revoked')
  await stack.setState('suspended', 'Suspended')
  await stack.kube.remove(stack.path('ApiKey', 'deleted'))
  for (const name of ['revoked', 'suspended', 'deleted']) await everyGateway(name, 401)
  pids = pidsNow()
})

it('FLUSHALL: the projection is rebuilt, and no call fails during the rebuild', async () => {
  const calls = startCalls()
  for (const round of ['first', 'second']) {
    const before = await projectionHead(stack)
    await stack.redis.admin.flushall()
    const after = await waitFor('another epoch', async () => {
      const head = await projectionHead(stack)
      return head.epoch !== before.epoch && head
    })
    expect(after.revision).toBeGreaterThan(before.revision)
    await eventually(async () => {
      for (const { epoch, source } of (await heartbeats(stack)).values()) expect([epoch, source]).toEqual([after.epoch, 'Redis'])
      expect([...(await heartbeats(stack)).keys()].toSorted()).toEqual(stack.gateways.map((gateway) => gateway.spec.pod))
    })
    credentials[round] = await stack.issueKey(round)
    expect(await programmed(round)).toMatchObject({ ready: 2, total: 2 })
    await everyGateway(round, 200)
  }
  expect(await programmed('valid')).toMatchObject({ ready: 2, total: 2 })
  const hashes = (await projectedKeys(stack)).flatMap((record) => record.verifiers.map((verifier) => String(verifier.hash)))
  expect(hashes).toContain(hashCredential(credentials['valid'] ?? ''))
  expect(hashes).not.toContain(hashCredential(credentials['deleted'] ?? ''))
  expectNoFalseAnswer(await calls.stop(), 5)
})

describe('Redis is killed for 30 s', () => {
  let calls: SteadyCalls
  let killedAt = 0
  let cold: Program
  let strict: Program

  beforeAll(async () => {
    calls = startCalls()
    cold = await stack.addGateway({ start: false })
    strict = await stack.addGateway({ start: false, env: { COLD_START: 'RequireRedis' } })
    await stack.redis.process.kill('SIGKILL')
    killedAt = performance.now()
    await Promise.all([cold.launch(), strict.launch()])
  })

  it('E18 a new key waits with a reason in its status, and gets no Secret before the gateways can know its value', async () => {
    await stack.apply('ApiKey', 'meanwhile')
    const object = await stack.untilCondition('ApiKey', 'meanwhile', 'SecretIssued', { status: 'False', reason: 'WaitingForStore' })
    expect(object.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'Programmed', status: 'Unknown', reason: 'StoreUnreachable' }),
    )
    expect(await stack.kube.get(objectPath('v1', 'Secret', stack.namespace, 'meanwhile'))).toBeUndefined()
  })

  it('a suspension and a deletion take effect by the mounted keyring alone', async () => {
    await stack.setState('suspended-later', 'Suspended')
    await stack.kube.remove(stack.path('ApiKey', 'deleted-later'))
    for (const gateway of stack.gateways.slice(0, 2)) {
      for (const name of ['suspended-later', 'deleted-later']) {
        await eventually(async () => expect(await callOn(gateway, credentials[name])).toBe(401))
      }
    }
  })

  it('a deletion still ends, with an Event that says why no gateway has confirmed the revocation', async () => {
    await eventually(async () => expect(await stack.kube.get(stack.path('ApiKey', 'deleted-later'))).toBeUndefined())
    await eventually(async () => {
      const note: unknown = expect.stringContaining('Redis does not answer')
      expect(await eventsAbout(stack, 'deleted-later')).toContainEqual({ reason: 'RevocationUnconfirmed', note })
    })
  })

  it('a gateway that starts now serves from the mounted keyring: the real model answers, ended keys are refused', async () => {
    await cold.ready()
    expect(await cold.metric('headgate_table_source{source="Keyring"}')).toBe(1)
    expect(await callOn(cold, credentials['valid'])).toBe(200)
    for (const name of ['revoked', 'suspended', 'suspended-later']) {
      await eventually(async () => expect(await callOn(cold, credentials[name]), name).toBe(401))
    }
    for (const name of ['deleted', 'deleted-later']) expect([401, 503]).toContain(await callOn(cold, credentials[name]))
  })

  it('a key that may have been issued during the outage gets 503, not 401, from every gateway', async () => {
    const { credential } = mintCredential()
    for (const gateway of [...stack.gateways.slice(0, 2), cold]) {
      await eventually(async () => expect(await callOn(gateway, credential)).toBe(503))
    }
  })

  it('with COLD_START=RequireRedis a gateway stays not ready and falsely refuses no key', async () => {
    await waitFor('its line about Redis', () => strict.process.log().includes('does not answer'))
    expect(await strict.isReady()).toBe(false)
    for (const name of ['valid', 'revoked', 'deleted']) expect(await callOn(strict, credentials[name])).toBe(503)
    expect(strict.process.running).toBe(true)
  })

  it('once Redis is back, empty, every program recovers without a restart', async () => {
    await sleep(Math.max(0, OUTAGE_MS - (performance.now() - killedAt))) // the length of the outage is part of the failure
    expect(await strict.isReady()).toBe(false)
    await stack.redis.start()
    await stack.untilCondition('ApiKey', 'meanwhile', 'Ready')
    credentials['meanwhile'] = await stack.value('meanwhile')
    await strict.ready()
    await eventually(async () => expect(await cold.metric('headgate_table_source{source="Redis"}')).toBe(1))
    await everyGateway('meanwhile', 200)
    await everyGateway('valid', 200)
    for (const name of ['suspended-later', 'deleted-later', 'revoked']) await everyGateway(name, 401)
    await stack.untilCondition('ApiKey', 'meanwhile', 'Programmed')
    expect(pidsNow()).toEqual(pids)
    await eventually(() => expect(calls.counts['deleted 401']).toBeGreaterThanOrEqual(100)) // the recovery may take less time than these calls
    expectNoFalseAnswer(await calls.stop(), 100)
  })

  it('later changes go through Redis again', async () => {
    await stack.setState('suspended-later', 'Active')
    await everyGateway('suspended-later', 200)
    await Promise.all([cold, strict].map((gateway) => gateway.stop()))
    stack.gateways.splice(2)
  })
})

it('E18 Redis frozen and thawed: calls continue, and a new key waits and then works', async () => {
  const calls = startCalls()
  const lines = () => stack.gateway.process.log().match(/Redis at \S+ does not answer/g)?.length ?? 0
  const before = lines()
  await stack.redis.process.kill('SIGSTOP')
  try {
    await waitFor('the gateway to notice', () => lines() > before)
    await stack.apply('ApiKey', 'frozen')
    await stack.untilCondition('ApiKey', 'frozen', 'SecretIssued', { status: 'False', reason: 'WaitingForStore' })
  } finally {
    await stack.redis.process.kill('SIGCONT')
  }
  await stack.untilCondition('ApiKey', 'frozen', 'Ready')
  credentials['frozen'] = await stack.value('frozen')
  await everyGateway('frozen', 200)
  expect(pidsNow()).toEqual(pids)
  expectNoFalseAnswer(await calls.stop(), 5)
})
