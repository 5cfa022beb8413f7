/** The fields of a ServedModel at a real gateway: servers with certificates and tokens, weights, names, and the namespaces that may call the model. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { ask, expectRow, WIRE_FORMATS, type Answer } from '../support/ask.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { PrivateCa, startTlsFront, type TlsFront } from '../support/private-ca.ts'
import type { Program } from '../support/program.ts'
import { NO_BACKEND, NOT_FOUND } from '../support/rows.ts'
import type { Stack } from '../support/stack.ts'
import { SteadyCalls } from '../support/steady-calls.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const HOME = 'served-home'
const AWAY = 'served-away'

const lab = openLab()
let stack: Stack
let ca: PrivateCa
const stubs: StubModel[] = []
const received: { readonly authorization: string | undefined; readonly conversation: unknown; readonly cookie: unknown }[][] = [[], []]
const fronts: TlsFront[] = []
let homeKey = ''
let awayKey = ''

const urlOf = (stub: number): string => stubs[stub]?.url ?? ''
const backend = (name: string, url: string, fields: object = {}): object => ({ name, url, messages: 'Native', ...fields })
const applyModel = (name: string, spec: object, namespace = HOME): Promise<TestObject> => stack.apply('ServedModel', name, spec, namespace)
async function served(name: string, spec: object, namespace = HOME): Promise<void> {
  await applyModel(name, spec, namespace)
  await stack.untilCondition('ServedModel', name, 'Ready', { namespace })
}
const call = (model: string, credential = homeKey, gateway: Program = stack.gateway): Promise<Answer> =>
  ask(lab, gateway.url, { credential, model })
const applySecret = (token: string, labels: Record<string, string>, hosts = ''): Promise<unknown> =>
  stack.kube.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'upstream', namespace: HOME, labels, annotations: { 'headgate.dev/upstream-hosts': hosts } },
    data: { token: Buffer.from(token).toString('base64') },
  })

beforeAll(async () => {
  ca = await PrivateCa.make(join(lab.folder, 'pki-of-served-models', 'pki'))
  stack = await lab.stack({
    namespaces: [HOME, AWAY],
    gatewayEnv: { UPSTREAM_CA_FILE: ca.file },
    operatorEnv: { PUBLISHING_NAMESPACES: HOME },
  })
  for (const seen of received) {
    stubs.push(
      await startStubModel({
        host: lab.address.ip,
        onRequest: ({ headers: { authorization, cookie, 'x-conversation-id': conversation } }) =>
          seen.push({ authorization, cookie, conversation }),
      }),
    )
  }
  homeKey = await stack.issueKey('home-key')
  awayKey = await stack.issueKey('away-key', {}, AWAY)
})
afterAll(async () => {
  for (const front of fronts) front.close()
  await Promise.all(stubs.map((stub) => stub.close()))
})

describe('an https backend with a private CA', () => {
  async function front(name: string, subject: string): Promise<void> {
    const started = await startTlsFront(await ca.certify(subject), lab.address.ip, stubs[0]?.port ?? 0)
    fronts.push(started)
    await served(name, { backends: [backend('tls', `https://${lab.address.ip}:${started.port}`)] })
  }

  it('is called by gateways whose UPSTREAM_CA_FILE names the CA, and by no others', async () => {
    await front('private', `IP:${lab.address.ip}`)
    const stranger = await stack.addGateway({ env: { UPSTREAM_CA_FILE: '' } })
    for (const format of WIRE_FORMATS) {
      expect((await ask(lab, stack.gateway.url, { format, credential: homeKey, model: 'private' })).status).toBe(200)
      expectRow(await ask(lab, stranger.url, { format, credential: homeKey, model: 'private' }), format, NO_BACKEND)
    }
    await stranger.stop()
    stack.gateways.pop()
  })

  it('is not called if its certificate names another host', async () => {
    await front('impostor', 'IP:10.250.7.99')
    expectRow(await call('impostor'), 'openai', NO_BACKEND)
  })
})

describe('forwardHeaders', () => {
  const headers = { 'x-conversation-id': 'c-1', cookie: 'a=b' }
  const seenBy = async (model: string): Promise<unknown> => {
    await ask(lab, stack.gateway.url, { credential: homeKey, model, headers })
    return received[0]?.at(-1)
  }

  it('of a model pass to its servers; a refused name is a condition with its field, and the model works without that header', async () => {
    await served('talks', { backends: [backend('only', urlOf(0))] })
    expect(await seenBy('talks')).toMatchObject({ conversation: undefined, cookie: undefined })
    await served('talks', { backends: [backend('only', urlOf(0))], forwardHeaders: ['X-Conversation-Id', 'Cookie'] })
    const object = await stack.untilCondition('ServedModel', 'talks', 'Accepted', {
      namespace: HOME,
      status: 'False',
      reason: 'HeaderRefused',
    })
    expect(JSON.stringify(object.status)).toContain('forwardHeaders[1]')
    await eventually(async () => expect(await seenBy('talks')).toMatchObject({ conversation: 'c-1', cookie: undefined }))
  })
})

describe('authSecretRef', () => {
  const LABEL = { 'headgate.dev/upstream-auth': 'true' }
  const TOKENS = ['first-upstream-token', 'second-upstream-token'] as const
  const last = (): string | undefined => received[0]?.at(-1)?.authorization
  /** Makes the operator read the Secrets now. It does not watch Secrets, and without an edit of the model it reads them every 10 minutes. */
  const reread = (): Promise<unknown> =>
    stack.kube.merge(stack.path('ServedModel', 'guarded'), {
      metadata: { annotations: { 'headgate.dev/reconcile-at': String(Date.now()) } },
    })

  it('of a Secret that its owner has not labelled is refused, and the gateway sends nothing', async () => {
    await applySecret(TOKENS[0], {})
    await applyModel('guarded', { backends: [backend('guarded', urlOf(0), { authSecretRef: { name: 'upstream', key: 'token' } })] })
    const object = await stack.untilCondition('ServedModel', 'guarded', 'Accepted', { status: 'False', reason: 'SecretNotFound' })
    expect(JSON.stringify(object.status)).toContain('headgate.dev/upstream-auth')
    expectRow(await call('guarded'), 'openai', NOT_FOUND)
  })

  it('of a Secret whose owner has not listed the host is refused, and the message contains the missing entry', async () => {
    await applySecret(TOKENS[0], LABEL, 'api.openai.com')
    const object = await stack.untilCondition('ServedModel', 'guarded', 'Accepted', { status: 'False', reason: 'CredentialHostNotAllowed' })
    expect(JSON.stringify(object.status)).toContain(new URL(urlOf(0)).origin)
    expectRow(await call('guarded'), 'openai', NOT_FOUND)
  })

  it('sends its token to the model server once the Secret lists its origin, and the token never enters Redis', async () => {
    await applySecret(TOKENS[0], LABEL, new URL(urlOf(0)).origin)
    await reread()
    await stack.untilCondition('ServedModel', 'guarded', 'Ready')
    await eventually(async () => expect((await call('guarded')).status).toBe(200)) // the mounted file arrives some time later, as with a kubelet
    expect(last()).toBe(`Bearer ${TOKENS[0]}`)
    expectNowhere(TOKENS[0], await stack.redis.dump())
  })

  it('follows a new token without a failed call', async () => {
    const calls = new SteadyCalls(lab, [stack.gateway.url], [{ name: 'guarded', credential: homeKey, model: 'guarded' }])
    await applySecret(TOKENS[1], LABEL, new URL(urlOf(0)).origin)
    await reread()
    await waitFor('the new token to be sent', () => last() === `Bearer ${TOKENS[1]}`)
    expect(Object.keys(await calls.stop())).toEqual(['guarded 200'])
    const sent = new Set(received[0]?.map(({ authorization }) => authorization).filter((text) => text !== undefined))
    expect([...sent]).toEqual(TOKENS.map((token) => `Bearer ${token}`))
    for (const token of TOKENS) expectNowhere(token, await stack.redis.dump())
  })

  function expectNowhere(token: string, dump: string): void {
    for (const text of [dump, stack.gateway.process.log(), stack.operator.process.log()]) expect(text.includes(token)).toBe(false)
  }
})

describe('weights', () => {
  const shares = async (count: number): Promise<number[]> => {
    for (const seen of received) seen.length = 0
    for (let i = 0; i < count; i++) expect((await call('weighed')).status).toBe(200)
    return received.map((seen) => seen.length)
  }

  it('distribute the calls; a weight of 0 gives a backend no calls; and an edit takes effect', async () => {
    const weighed = (first: number, second: number): object => ({
      backends: [backend('first', urlOf(0), { weight: first }), backend('second', urlOf(1), { weight: second })],
    })
    await served('weighed', weighed(3, 1))
    const [first = 0, second = 0] = await shares(200)
    expect(first + second).toBe(200)
    expect(Math.abs(first - 150)).toBeLessThan(35) // more than five standard deviations: a false failure once in a million runs
    await applyModel('weighed', weighed(0, 1))
    await stack.untilCondition('ServedModel', 'weighed', 'Ready')
    await eventually(async () => expect(await shares(5)).toEqual([0, 5]))
    expect(await shares(30)).toEqual([0, 30])
  })

  it('if one backend is stopped, the other one answers, without a failed call', async () => {
    const spare = await startStubModel({ host: lab.address.ip })
    await served('doubled', { backends: [backend('mortal', spare.url), backend('steady', urlOf(1))] })
    for (let i = 0; i < 10; i++) expect((await call('doubled')).status).toBe(200)
    await spare.close()
    for (let i = 0; i < 20; i++) expect((await call('doubled')).status).toBe(200)
    await stack.untilCondition('ServedModel', 'doubled', 'BackendsHealthy', { status: 'False', reason: 'Degraded' })
  })
})

describe('names', () => {
  it('NameConflict: the older object keeps the name, the younger one names the older object and serves its own other names', async () => {
    await applyModel('older', { servedName: 'contested', backends: [backend('only', urlOf(0))] })
    await applyModel('younger', { servedName: 'contested', aliases: ['uncontested'], backends: [backend('only', urlOf(1))] })
    const [older, younger] = await Promise.all(['older', 'younger'].map((name) => stack.kube.get(stack.path('ServedModel', name))))
    const [winner, loser] = [older, younger].toSorted(byAge).map((object) => object?.metadata.name ?? '') as [string, string]
    const conflict = await stack.untilCondition('ServedModel', loser, 'Accepted', { status: 'False', reason: 'NameConflict' })
    expect(JSON.stringify(conflict.status.conditions)).toContain(`${HOME}/${winner}`)
    await stack.untilCondition('ServedModel', winner, 'Ready')
    await eventually(async () => expect((await call('uncontested')).status).toBe(200))
    for (const seen of received) seen.length = 0
    for (let i = 0; i < 5; i++) expect((await call('contested')).status).toBe(200)
    expect(received.map((seen) => seen.length)).toEqual(winner === 'older' ? [5, 0] : [0, 5])

    await stack.kube.remove(stack.path('ServedModel', winner))
    await stack.untilCondition('ServedModel', loser, 'Ready')
    await eventually(async () => expect((await call('contested')).status).toBe(200))
  })

  it('an answer to an alias carries the alias as its model, and the list of models names the alias', async () => {
    await served('named', { aliases: ['nickname'], backends: [backend('only', urlOf(0), { upstreamModel: 'inner' })] })
    for (const name of ['named', 'nickname']) expect((JSON.parse((await call(name)).text) as { model: string }).model).toBe(name)
    const list = await fetch(`${stack.gateway.url}/v1/models`, { headers: { authorization: `Bearer ${homeKey}` } })
    const { data } = JSON.parse(lab.record(await list.text())) as { data: { id: string }[] }
    expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(['named', 'nickname']))
    expect(data.map(({ id }) => id)).not.toContain('inner')
  })
})

describe('allowedNamespaces', () => {
  const visible = async (credential: string): Promise<string[]> => {
    const list = await fetch(`${stack.gateway.url}/v1/models`, { headers: { authorization: `Bearer ${credential}` } })
    return (JSON.parse(lab.record(await list.text())) as { data: { id: string }[] }).data.map(({ id }) => id)
  }

  it('E3 Same, All and Selector: a hidden and an absent model get the same answer', async () => {
    const backends = [backend('only', urlOf(0))]
    const selector = { matchLabels: { tier: 'gold' } }
    await served('same', { backends })
    await served('all', { backends, allowedNamespaces: { from: 'All' } })
    await served('selected', { backends, allowedNamespaces: { from: 'Selector', selector } })
    for (const name of ['same', 'all', 'selected']) expect((await call(name)).status, name).toBe(200)
    expect((await call('all', awayKey)).status).toBe(200)
    for (const format of WIRE_FORMATS) {
      const answers = await Promise.all(
        ['same', 'selected', 'absent'].map((model) => ask(lab, stack.gateway.url, { format, credential: awayKey, model })),
      )
      for (const answer of answers) expectRow(answer, format, NOT_FOUND)
      const plain = answers.map(({ text, headers }) =>
        text.replace(/same|selected|absent/, '<name>').replaceAll(headers.get('x-request-id') ?? '', '<id>'),
      )
      expect(new Set(plain).size).toBe(1)
    }
    expect(await visible(awayKey)).toEqual(['all'])

    await stack.site.plane.namespace(AWAY, { tier: 'gold' })
    await eventually(async () => expect((await call('selected', awayKey)).status).toBe(200))
    expect(await visible(awayKey)).toEqual(['all', 'selected'])
    await stack.site.plane.namespace(AWAY, {})
    await eventually(async () => void expectRow(await call('selected', awayKey), 'openai', NOT_FOUND))
    expectRow(await call('same', awayKey), 'openai', NOT_FOUND)
  })

  it('a namespace that the administrator has not listed serves only its own keys, and takes no name from others', async () => {
    await served('owned', { allowedNamespaces: { from: 'All' }, backends: [backend('only', urlOf(0))] })
    await applyModel(
      'thief',
      { servedName: 'owned', aliases: ['bait'], allowedNamespaces: { from: 'All' }, backends: [backend('only', urlOf(1))] },
      AWAY,
    )
    const expected = { namespace: AWAY, status: 'False', reason: 'PublishingNotAllowed' } as const
    await stack.untilCondition('ServedModel', 'thief', 'Accepted', expected)
    await eventually(async () => expect((await call('bait', awayKey)).status).toBe(200))
    expectRow(await call('bait', homeKey), 'openai', NOT_FOUND)
    await stack.kube.remove(stack.path('ServedModel', 'owned'))
    await eventually(async () => void expectRow(await call('owned', homeKey), 'openai', NOT_FOUND))
    await stack.kube.remove(objectPath('headgate.dev/v1alpha1', 'ServedModel', AWAY, 'thief'))
  })

  it('a key resolves a name in its own namespace first, whichever model is older', async () => {
    await served('shared', { allowedNamespaces: { from: 'All' }, backends: [backend('only', urlOf(0))] })
    await eventually(async () => expect((await call('shared', awayKey)).status).toBe(200))
    await served('shared', { backends: [backend('only', urlOf(1))] }, AWAY)
    for (const seen of received) seen.length = 0
    await call('shared', awayKey)
    await call('shared', homeKey)
    expect(received.map((seen) => seen.length)).toEqual([1, 1])
    await stack.kube.remove(objectPath('headgate.dev/v1alpha1', 'ServedModel', AWAY, 'shared'))
    await eventually(async () => {
      for (const seen of received) seen.length = 0
      expect((await call('shared', awayKey)).status).toBe(200)
      expect(received.map((seen) => seen.length)).toEqual([1, 0])
    })
  })
})

/** Oldest first, and the smaller uid first on a tie, since creation times have whole seconds. */
function byAge(a: TestObject | undefined, b: TestObject | undefined): number {
  const age = (object: TestObject | undefined): string => `${String(object?.metadata['creationTimestamp'])} ${object?.metadata.uid}`
  return age(a) < age(b) ? -1 : 1
}
