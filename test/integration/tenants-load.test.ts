/**
 * The load of one tenant on the others: large keys, many keys, many models, large Credentials, many edits. Beyond a bound a new object waits
 * with a reason in its status. Every other tenant is served as before, even by an operator that starts at that time.
 */
import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { ask } from '../support/ask.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import { CHART_HEAP } from '../support/chart-operator.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { conditionOf, conditionsOf, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { OtherTenant } from '../support/other-tenant.ts'
import { expectCleared, expectReported, type Reported } from '../support/reported.ts'
import { sized, timeLimit } from '../support/sizes.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
/** The chart's memory limit of the operator, and the memory of Redis that a tenant's edits may use, bytes. */
const OPERATOR_MEMORY = 512 * 2 ** 20
const REDIS_GROWTH = 64 * 2 ** 20
const KEYS_PER_NAMESPACE = 500
const MODELS_PER_NAMESPACE = sized(400, 3_000)
const MANY_KEYS = 692
const MANY_EDITS = sized(1_500, 6_531)

const lab = openLab()

const applyKey = (stack: Stack, namespace: string, name: string, models: readonly string[]): Promise<TestObject> =>
  stack.apply('ApiKey', name, { models }, namespace)
const applyModel = (stack: Stack, namespace: string, name: string, spec: object): Promise<TestObject> =>
  stack.apply('ServedModel', name, spec, namespace)

/** Random model names of `bytes` characters together, which compression cannot shrink much. */
function modelsOf(bytes: number): string[] {
  const name = (length: number): string => Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
  const whole = Array.from({ length: Math.floor(bytes / 200) }, () => name(200))
  return bytes % 200 === 0 ? whole : [...whole, name(bytes % 200)]
}

async function reasonsOf(stack: Stack, kind: 'ApiKey' | 'ServedModel', namespace: string, type: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const object of await stack.list(kind, namespace)) {
    const reason = conditionOf(object, type)?.reason ?? 'none'
    counts[reason] = (counts[reason] ?? 0) + 1
  }
  return counts
}

async function nameWithReason(stack: Stack, kind: 'ApiKey' | 'ServedModel', namespace: string, reason: string): Promise<string> {
  return waitFor(
    `an object of ${namespace} with ${reason}`,
    async () => {
      const objects = await stack.list(kind, namespace)
      return objects.find(({ status }) => JSON.stringify(status?.conditions ?? []).includes(`"${reason}"`))?.metadata.name
    },
    { deadlineMs: 120_000, everyMs: 500 },
  )
}

async function expectWell(stack: Stack, pid: number): Promise<void> {
  expect(stack.operator.process.pid).toBe(pid)
  expect(await stack.operator.metric('process_resident_memory_bytes')).toBeLessThan(OPERATOR_MEMORY)
}

async function expectServedOverRestart(stack: Stack, others: OtherTenant): Promise<void> {
  await others.expectServed()
  await stack.operator.restart()
  await others.expectServed()
}

describe('a keyring that is full', () => {
  const [tenant, other] = ['load-keyring', 'load-keyring-others']
  /** Sizes of names of one alphabet, so that they compare in any unit: the waiting key never fits into the space that the shrunk key frees. */
  const [waitingBytes, filling, shrunk] = [8_000, 4_000, 2_500]

  it(
    'KeyringFull on the key that does not fit; small keys of others are issued; the key is issued once others are deleted',
    async () => {
      const stack = await lab.stack({
        gateways: 2,
        namespaces: [tenant, other],
        operatorEnv: { ...CHART_HEAP, KEYRING_SHARDS: '1', MAX_MODEL_BYTES_PER_NAMESPACE: '33554432' },
      })
      const others = await OtherTenant.settle(lab, stack, other)
      const names = await fill(stack)
      const reported: Reported = {
        kind: 'ApiKey',
        name: 'waiting',
        namespace: tenant,
        type: 'SecretIssued',
        reason: 'KeyringFull',
        message: /keyring.*administrator/is,
      }
      await expectReported(stack, reported)
      await applyKey(stack, tenant, names[0] ?? '', modelsOf(shrunk))
      await stack.untilCondition('ApiKey', names[0] ?? '', 'Programmed', { namespace: tenant })
      await expectServedOverRestart(stack, others)
      await expectReported(stack, reported)
      for (const name of names.slice(1, 6)) await stack.kube.remove(stack.path('ApiKey', name, tenant))
      await expectCleared(stack, reported)
      await others.close()
    },
    timeLimit(600_000),
  )

  async function fill(stack: Stack): Promise<string[]> {
    const issued: string[] = []
    for (let batch = 0; batch < 40; batch++) {
      const names = numbered(`fill-${batch}`, 16)
      await atOnce(names, (name) => applyKey(stack, tenant, name, modelsOf(filling)))
      await waitFor(
        'every key to be issued or refused',
        async () => ((await reasonsOf(stack, 'ApiKey', tenant, 'SecretIssued'))['none'] ?? 0) === 0,
        { deadlineMs: 120_000, everyMs: 250 },
      )
      const keys = await stack.list('ApiKey', tenant)
      const full = keys.filter(({ status }) => JSON.stringify(status?.conditions ?? []).includes('"KeyringFull"'))
      issued.push(...names.filter((name) => full.every(({ metadata }) => metadata.name !== name)))
      if (full.length === 0) continue
      await applyKey(stack, tenant, 'waiting', modelsOf(waitingBytes))
      await stack.untilCondition('ApiKey', 'waiting', 'SecretIssued', { namespace: tenant, status: 'False', reason: 'KeyringFull' })
      for (const { metadata } of full) await stack.kube.remove(stack.path('ApiKey', metadata.name, tenant))
      return issued
    }
    throw new Error('the keyring never became full')
  }
})

describe('many objects of one namespace', () => {
  const [keys, models, credentials, edits, other] = ['load-keys', 'load-models', 'load-credentials', 'load-edits', 'load-others']
  let plane: ControlPlane
  let stack: Stack
  let others: OtherTenant
  let server: StubModel
  beforeAll(async () => {
    plane = await lab.ownControlPlane()
    const operatorEnv = {
      ...CHART_HEAP,
      MAX_API_KEYS_PER_NAMESPACE: String(KEYS_PER_NAMESPACE),
      MAX_MODEL_BYTES_PER_NAMESPACE: '33554432',
      MAX_SERVED_MODELS_PER_NAMESPACE: String(MODELS_PER_NAMESPACE),
    }
    stack = await lab.stack({ gateways: 2, namespaces: [other, keys, models, credentials, edits], operatorEnv }, plane)
    server = await startStubModel({ host: lab.address.ip })
    others = await OtherTenant.settle(lab, stack, other)
  })
  afterAll(async () => {
    await others.close()
    await server.close()
  })

  it(`${MANY_KEYS} ApiKeys of 8 KiB: exactly the keys beyond the limit wait with NamespaceLimitReached`, async () => {
    const { pid } = stack.operator.process
    const creating = atOnce(numbered('fat', MANY_KEYS), (name) => applyKey(stack, keys, name, modelsOf(8_192)))
    await others.expectServedDuring(creating)
    await waitFor(
      'every key to be issued or refused',
      async () => {
        const { Issued = 0 } = await reasonsOf(stack, 'ApiKey', keys, 'SecretIssued')
        const { NamespaceLimitReached = 0 } = await reasonsOf(stack, 'ApiKey', keys, 'Accepted')
        return Issued === KEYS_PER_NAMESPACE && NamespaceLimitReached === MANY_KEYS - KEYS_PER_NAMESPACE
      },
      { deadlineMs: 240_000, everyMs: 500 },
    )
    await expectWell(stack, pid)
    const name = await nameWithReason(stack, 'ApiKey', keys, 'NamespaceLimitReached')
    const reported: Reported = {
      kind: 'ApiKey',
      name,
      namespace: keys,
      type: 'Accepted',
      reason: 'NamespaceLimitReached',
      message: new RegExp(`${KEYS_PER_NAMESPACE}.*(MAX_API_KEYS_PER_NAMESPACE|delete|remove)`, 'is'),
    }
    await expectReported(stack, reported)
    await expectServedOverRestart(stack, others)
    // one by one: the API server ends a call after 60 s, and deletes a collection with one worker
    await atOnce(numbered('fat', MANY_KEYS), (one) => stack.kube.remove(stack.path('ApiKey', one, keys)))
    await waitFor('the keys to be deleted', async () => (await stack.list('ApiKey', keys)).length === 0, {
      deadlineMs: 180_000,
      everyMs: 500,
    })
    await others.expectServed()
  }, 900_000)

  it(
    `${MODELS_PER_NAMESPACE} ServedModels of the same names and one more, which waits; one edit reaches the gateways, and the Lease is kept`,
    async () => {
      const { pid } = stack.operator.process
      const aliases = numbered('alias', 16)
      const spec = { servedName: 'shared-llm', aliases, backends: [{ name: 'one', url: server.url, messages: 'Native' }] }
      const creating = atOnce(numbered('same', MODELS_PER_NAMESPACE), (name) => applyModel(stack, models, name, spec))
      await others.expectServedDuring(creating)
      await untilYounger()
      await applyModel(stack, models, 'one-more', spec)
      const reported: Reported = {
        kind: 'ServedModel',
        name: 'one-more',
        namespace: models,
        type: 'Accepted',
        reason: 'NamespaceLimitReached',
        message: new RegExp(`${MODELS_PER_NAMESPACE}.*(MAX_SERVED_MODELS_PER_NAMESPACE|delete|remove)`, 'is'),
      }
      await expectReported(stack, reported)
      const winner = await firstModel()
      await applyModel(stack, models, winner, { ...spec, aliases: [...aliases.slice(1), 'fresh-alias'] })
      await others.expectServed()
      const credential = await stack.issueKey('caller', {}, models)
      await eventually(async () => {
        for (const gateway of stack.gateways) expect((await ask(lab, gateway.url, { credential, model: 'fresh-alias' })).status).toBe(200)
      })
      await expectWell(stack, pid)
      await expectServedOverRestart(stack, others)
      await stack.kube.remove(stack.path('ServedModel', winner, models))
      await eventually(async () => expect((await ask(lab, stack.gateway.url, { credential, model: 'shared-llm' })).status).toBe(200))
      // `one-more` has room now, but older objects have its names
      const conflict = { namespace: models, status: 'False', reason: 'NameConflict', deadlineMs: 120_000 } as const
      await stack.untilCondition('ServedModel', 'one-more', 'Accepted', conflict)
    },
    timeLimit(600_000),
  )

  /** Waits until new objects are younger than every model, since ages are whole seconds. */
  async function untilYounger(): Promise<void> {
    const objects = await stack.list('ServedModel', models)
    const newest = Math.max(...objects.map(({ metadata }) => Date.parse(String(metadata['creationTimestamp']))))
    await waitFor('the next second', () => Date.now() >= newest + 1_000)
  }

  async function firstModel(): Promise<string> {
    const objects = await stack.list('ServedModel', models)
    const age = ({ metadata }: TestObject): string => `${String(metadata['creationTimestamp'])} ${metadata.name}`
    return objects.toSorted((a, b) => (age(a) < age(b) ? -1 : 1))[0]?.metadata.name ?? ''
  }

  it('9 ServedModels with 16 Credentials of 8 KiB each: Credentials of others are still rotated, and each of the nine has a clear status', async () => {
    const { pid } = stack.operator.process
    const names = numbered('heavy', 9)
    await stack.exposeService('server', server.port, { namespace: credentials })
    for (const [m, name] of names.entries()) {
      const data = Object.fromEntries(
        numbered('t', 16).map((key, i) => [key, Buffer.from(`${m}-${i}-${modelsOf(8_000).join('')}`).toString('base64')]),
      )
      const metadata = {
        name,
        namespace: credentials,
        labels: { 'headgate.dev/upstream-auth': 'true' },
        annotations: { 'headgate.dev/upstream-hosts': `server.${credentials}.svc` },
      }
      await stack.kube.apply({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data })
      const backends = numbered('t', 16).map((key) => ({
        name: key,
        service: { name: 'server', port: server.port },
        messages: 'Native',
        authSecretRef: { name, key },
      }))
      await applyModel(stack, credentials, name, { backends })
    }
    await others.expectServed()
    for (const name of names) await expectClearStatus(name)
    await expectWell(stack, pid)
    await expectServedOverRestart(stack, others)
    for (const name of names) await expectClearStatus(name)
  }, 300_000)

  async function expectClearStatus(name: string): Promise<void> {
    await eventually(async () => {
      const object = await stack.kube.get(stack.path('ServedModel', name, credentials))
      const accepted = conditionOf(object, 'Accepted')
      const isClear = conditionOf(object, 'Ready')?.status === 'True' || (accepted?.status === 'False' && accepted.message !== '')
      expect(isClear, JSON.stringify(conditionsOf(object))).toBe(true)
    })
  }

  it(
    `${MANY_EDITS} edits of one key of 8 KiB: Redis does not fill up, the last edit takes effect, and others are served`,
    async () => {
      const { pid } = stack.operator.process
      await applyKey(stack, edits, 'edited', ['*'])
      await stack.untilCondition('ApiKey', 'edited', 'Ready', { namespace: edits })
      const usedBytes = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await stack.redis.admin.info('memory'))?.[1])
      const before = await usedBytes()
      const editing = atOnce(numbered('edit', MANY_EDITS), () => applyKey(stack, edits, 'edited', modelsOf(8_192)), 4)
      await others.expectServedDuring(editing)
      expect((await usedBytes()) - before).toBeLessThan(REDIS_GROWTH)
      await expectWell(stack, pid)
      const backends = [{ name: 'one', url: server.url, messages: 'Native' }]
      await applyModel(stack, edits, 'only-this', { backends })
      await applyKey(stack, edits, 'edited', ['only-this'])
      const credential = await stack.value('edited', edits)
      await eventually(async () => {
        for (const gateway of stack.gateways) expect((await ask(lab, gateway.url, { credential, model: 'only-this' })).status).toBe(200)
      })
      await expectServedOverRestart(stack, others)
    },
    timeLimit(600_000),
  )
})
