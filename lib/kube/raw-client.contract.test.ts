import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FakeApiServer } from '../../test/support/fake-api-server.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { type Clock, systemClock } from '#platform/clock.ts'
import { KubeCredentials } from './kube-credentials.ts'
import { isKubeError, type KubeError, type KubeErrorCode } from './port.ts'
import { RawClient } from './raw-client.ts'
import { apiKeys } from '#api/resources.ts'
import { secrets, type Secret } from './resources.ts'
import { Transport } from './transport.ts'

let server: FakeApiServer
let transport: Transport
let waitsMs: number[]
let client: RawClient

/** Waits end at once and are recorded. */
const clock: Clock = {
  ...systemClock,
  after(delayMs, callback) {
    waitsMs.push(delayMs)
    const timer = setImmediate(callback)
    return () => clearImmediate(timer)
  },
}

beforeEach(async () => {
  server = await FakeApiServer.start()
  const kubeconfig = server.writeKubeconfig(join(temporaryFolder(), 'kubeconfig'), { token: 'token-1' })
  transport = new Transport({ credentials: new KubeCredentials(kubeconfig), clock: systemClock })
  waitsMs = []
  client = new RawClient({ transport, clock, random: () => 0.5 })
})

afterEach(async () => {
  await transport.close()
  await server.stop()
})

const ref = { namespace: 'shop', name: 'bot' }
const secret = (name = 'bot'): Secret => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'shop' }, data: { a: 'YQ==' } })

async function failure(call: Promise<unknown>): Promise<KubeError> {
  const error: unknown = await call.then(
    () => new Error('it succeeded'),
    (thrown: unknown) => thrown,
  )
  if (!isKubeError(error)) throw error
  return error
}

describe('requests and results', () => {
  test('a kind that is not served is an error, never an absent object: a sweep would revoke every key', async () => {
    server.fail({ times: 3, failure: { kind: 'body', status: 404, body: '404 page not found' } })
    expect((await failure(client.get(apiKeys, ref))).code).toBe('NotFound')
    expect((await failure(client.remove(apiKeys, ref))).code).toBe('NotFound')
    expect((await failure(client.list(apiKeys, ''))).code).toBe('NotFound')
  })

  test('a list by label that the API server refuses for lack of a cache is sent without the label, with the same result', async () => {
    await client.create(secrets, secret('other'))
    await client.create(secrets, { ...secret(), metadata: { ...secret().metadata, labels: { set: 'a=b' } } })
    server.fail({ method: 'GET', times: 2, failure: { kind: 'status', status: 429, retryAfterSeconds: 1 } })
    expect((await client.list(secrets, 'shop', 'set=a=b')).map(({ metadata }) => metadata.name)).toEqual(['bot'])
    const [refused, , listed] = server.calls.filter(({ method }) => method === 'GET')
    expect([refused?.query.get('labelSelector'), listed?.query.get('labelSelector')]).toEqual(['set=a=b', null])
    expect(listed?.query.get('limit')).not.toBeNull() // without a limit the API server reads its cache
  })

  test('create, update and patch work on plain objects under our field manager, and a stale update is a Conflict', async () => {
    const created = await client.create(secrets, secret())
    expect(created.kind).toBe('Secret')
    const updated = await client.update(secrets, { ...created, data: { a: 'Yg==' } })
    expect((await failure(client.update(secrets, created))).code).toBe('Conflict')
    const patched = await client.patch(secrets, ref, [
      { op: 'test', path: '/metadata/resourceVersion', value: updated.metadata.resourceVersion },
      { op: 'add', path: '/data/b', value: 'Yw==' },
    ])
    expect(patched.data).toEqual({ a: 'Yg==', b: 'Yw==' })
    expect((await failure(client.create(secrets, secret()))).code).toBe('AlreadyExists')
    const writes = server.calls.filter((call) => call.method !== 'GET')
    expect(writes.every((call) => call.query.get('fieldManager') === 'headgate-operator')).toBe(true)
    expect(writes.find((call) => call.method === 'PATCH')?.contentType).toBe('application/json-patch+json')
  })

  test('a status is applied whole, with the uid, and nothing but the status', async () => {
    const created = await client.create(secrets, secret())
    await client.applyStatus(secrets, { ...created, status: { ready: true } } as Secret)
    const call = server.calls.at(-1)
    expect(call).toMatchObject({
      method: 'PATCH',
      contentType: 'application/apply-patch+yaml',
      path: '/api/v1/namespaces/shop/secrets/bot/status',
    })
    expect(call?.query.get('force')).toBe('true')
    expect(JSON.parse(call?.body ?? '')).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'bot', namespace: 'shop', uid: created.metadata.uid },
      status: { ready: true },
    })
  })

  test('a long list comes in pages of 500, each object with kind and without managedFields', async () => {
    for (let index = 0; index < 1_201; index += 1) {
      const { metadata, ...rest } = secret(`s-${index}`)
      await server.store.create(secrets, { ...rest, metadata: { ...metadata, managedFields: [{ manager: 'kubectl' }] } } as Secret)
    }
    const all = await client.list(secrets, 'shop')
    expect(all).toHaveLength(1_201)
    expect(new Set(all.map((each) => each.metadata.name)).size).toBe(1_201)
    expect(all[0]).toMatchObject({ apiVersion: 'v1', kind: 'Secret' })
    expect(all[0]?.metadata).not.toHaveProperty('managedFields')
    expect(server.calls.map((call) => call.query.get('limit'))).toEqual(['500', '500', '500'])
  })
})

describe('failures of the API server', () => {
  test.each([
    ['429', { kind: 'status', status: 429, retryAfterSeconds: 1 }, 1_000],
    ['5xx', { kind: 'status', status: 500 }, 0],
    ['a broken connection', { kind: 'reset' }, 0],
    ['half an answer', { kind: 'half-answer' }, 0],
  ] as const)('a read is tried again after %s, and waits at least as long as the server asks', async (_what, injected, leastMs) => {
    await client.create(secrets, secret())
    server.fail({ method: 'GET', failure: injected })
    expect((await client.get(secrets, ref))?.metadata.name).toBe('bot')
    expect(waitsMs).toHaveLength(1)
    expect(waitsMs[0]).toBeGreaterThanOrEqual(leastMs)
  })

  test('there are at most two tries, and a long Retry-After goes to the caller, because a worker must not wait here', async () => {
    server.fail({ method: 'GET', times: 99, failure: { kind: 'status', status: 503 } })
    expect(await failure(client.get(secrets, ref))).toMatchObject({ code: 'Unreachable', status: 503 })
    expect(server.calls).toHaveLength(2)
    server.heal()
    server.fail({ method: 'GET', failure: { kind: 'status', status: 429, retryAfterSeconds: 20 } })
    expect(await failure(client.get(secrets, ref))).toMatchObject({ code: 'TooManyRequests', retryAfterSeconds: 20 })
    expect(server.calls).toHaveLength(3)
  })

  test('an error names the namespace of the object', async () => {
    server.fail({ failure: { kind: 'status', status: 403, reason: 'Forbidden', cause: 'NamespaceTerminating' } })
    expect((await failure(client.create(secrets, secret()))).namespace).toBe('shop')
  })

  test('a dry run asks the server for one', async () => {
    await client.create(secrets, secret(), { dryRun: true })
    expect(server.calls.at(-1)?.query.get('dryRun')).toBe('All')
  })

  test('create, update and patch are sent once, even after a failure', async () => {
    const created = await client.create(secrets, secret())
    for (const method of ['POST', 'PUT', 'PATCH']) server.fail({ method, times: 9, failure: { kind: 'lost-answer' } })
    const before = server.calls.length
    expect((await failure(client.create(secrets, secret('other')))).code).toBe('Unreachable')
    expect((await failure(client.update(secrets, created))).code).toBe('Unreachable')
    expect((await failure(client.patch(secrets, ref, [{ op: 'remove', path: '/data/a' }]))).code).toBe('Unreachable')
    expect(server.calls.length - before).toBe(3)
  })

  test('a delete of a known uid is tried again after a lost answer, one without a uid is not', async () => {
    const created = await client.create(secrets, secret())
    await client.create(secrets, secret('other'))
    server.fail({ method: 'DELETE', failure: { kind: 'lost-answer' } })
    expect(await client.remove(secrets, ref, { uid: created.metadata.uid ?? '' })).toBe('absent')
    server.heal()
    server.fail({ method: 'DELETE', failure: { kind: 'lost-answer' } })
    expect((await failure(client.remove(secrets, { ...ref, name: 'other' }))).code).toBe('Unreachable')
  })

  test('a status is applied again after a lost answer', async () => {
    const created = await client.create(secrets, secret())
    server.fail({ method: 'PATCH', failure: { kind: 'lost-answer' } })
    await expect(client.applyStatus(secrets, { ...created, status: { ready: true } } as Secret)).resolves.toMatchObject({
      status: { ready: true },
    })
  })

  const answers: ReadonlyArray<readonly [number, string, KubeErrorCode]> = [
    [400, 'BadRequest', 'Invalid'],
    [401, 'Unauthorized', 'Unauthorized'],
    [403, 'Forbidden', 'Forbidden'],
    [409, 'Conflict', 'Conflict'],
    [410, 'Expired', 'Expired'],
    [422, 'Invalid', 'Invalid'],
    [429, 'TooManyRequests', 'TooManyRequests'],
    [504, 'Timeout', 'Unreachable'],
    [418, 'Odd', 'Other'],
  ]
  test.each(answers)('status %i %s is %s', async (status, reason, code) => {
    server.fail({ failure: { kind: 'status', status, reason } })
    server.fail({ failure: { kind: 'status', status, reason } })
    expect(await failure(client.create(secrets, secret()))).toMatchObject({ code, status })
  })

  test('a namespace that is being deleted has another error than missing rights', async () => {
    server.fail({ failure: { kind: 'status', status: 403, reason: 'Forbidden', cause: 'NamespaceTerminating' } })
    expect((await failure(client.create(secrets, secret()))).code).toBe('NamespaceTerminating')
  })

  test('no message quotes a body, which may hold a Secret', async () => {
    const value = 'sk-hg1-do-not-print'
    for (const status of [200, 400, 403, 422, 500]) {
      const body =
        status === 200 ? `{"data": ${value}` : JSON.stringify({ kind: 'Status', reason: 'Invalid', message: `Invalid value: "${value}"` })
      server.fail({ failure: { kind: 'body', status, body } })
      const error = await failure(client.create(secrets, secret()))
      expect(`${error.message} ${String(error.stack)} ${String(error.cause)}`).not.toContain(value)
    }
  })
})
