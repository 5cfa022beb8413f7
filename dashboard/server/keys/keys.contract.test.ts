import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ApiKey } from '#api/apikey.ts'
import type { Plan } from '#api/plan.ts'
import { accounts, apiKeys, plans } from '#api/resources.ts'
import { hashCredential, hexOf, proofOf } from '#contract/values/credential.ts'
import { apiVersionOf } from '#kube/port.ts'
import { DashboardWorld, type FormBrowser, type Visit } from '../../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'

const NAMESPACE = 'headgate-accounts'
const ATTEMPT = 'an-attempt-of-this-dialog'
const FORM = { name: 'docs-search', models: ['*'] }

let world: DashboardWorld
let maya: FormBrowser

beforeEach(async () => {
  world = await DashboardWorld.open({ folder: temporaryFolder() })
  await world.store.create(plans, plan({ models: ['llama', 'qwen'], maxKeys: 3 }))
  maya = await world.person('maya@fernwood.example')
})
afterEach(async () => await world[Symbol.asyncDispose]())

function plan(spec: Partial<Plan['spec']>): Plan {
  return {
    apiVersion: apiVersionOf(plans),
    kind: plans.kind,
    metadata: { name: 'default' },
    spec: { models: ['*'], maxKeys: 100, ...spec },
  }
}

let attempts = 0
async function create(browser: FormBrowser, form: object = FORM, attempt = `${ATTEMPT}-${(attempts += 1)}`): Promise<Visit> {
  return await browser.call('POST', '/api/keys', { ...form, attempt })
}

async function stored(): Promise<readonly ApiKey[]> {
  return await world.store.list(apiKeys, NAMESPACE)
}

async function only(): Promise<ApiKey> {
  const [key, ...others] = await stored()
  if (!key || others.length > 0) throw new Error(`${others.length + 1} keys`)
  return key
}

/** Lets the operator of the test say how far a key has come. */
async function report(key: ApiKey, reason: string, isProgrammed = true): Promise<void> {
  const condition = (type: string, status: string, why: string) => ({
    type,
    status,
    reason: why,
    message: '',
    lastTransitionTime: '2026-11-24T12:00:00Z',
  })
  const conditions = [
    condition('Ready', reason === 'Ready' ? 'True' : 'False', reason),
    condition('Programmed', isProgrammed ? 'True' : 'False', isProgrammed ? 'Programmed' : 'Pending'),
  ]
  const programmed = { revision: 7, ready: isProgrammed ? 3 : 2, total: 3 }
  const status = { observedGeneration: key.metadata.generation ?? 0, programmed, conditions } as NonNullable<ApiKey['status']>
  await world.store.applyStatus(apiKeys, { ...key, status })
}

describe('a new key', () => {
  test('is shown once: the manifest has its hash, its proof and its hint, and no later answer has the value', async () => {
    const made = await create(maya)
    expect(made.status).toBe(200)
    const { key, value } = made.json()
    const { metadata, spec } = await only()
    expect(spec.source).toEqual({
      type: 'Hash',
      hash: {
        sha256: hexOf(hashCredential(value)),
        hint: `${value.slice(0, 8)}…${value.slice(-4)}`,
        proof: hexOf(proofOf(value, { namespace: NAMESPACE, name: metadata.name })),
      },
    })
    for (const path of ['/api/keys', `/api/keys/${key.id}`, '/api/export', '/api/me'])
      expect((await maya.get(path)).text).not.toContain(value)
    expect(JSON.stringify(await stored())).not.toContain(value)
    expect(world.lines.join('')).not.toContain(value)
    expect(made.headers.get('cache-control')).toBe('no-store')
  })

  test('belongs to the account of the person, whatever the request says', async () => {
    await create(maya, { ...FORM, models: ['llama'] })
    const [account] = await world.store.list(accounts, '')
    const { metadata, spec } = await only()
    expect(spec.accountRef).toEqual({ name: account?.metadata.name })
    expect(metadata.labels).toEqual({ 'headgate.dev/created-by': 'dashboard' })
    const refused = await create(maya, { ...FORM, accountRef: { name: 'acme' } })
    expect([refused.status, (await stored()).length]).toEqual([422, 1])
  })

  test('has the budget, the limits and the end of the form', async () => {
    await create(maya, {
      ...{ ...FORM, budget: { amount: '25', window: 'Month' }, requestsPerMinute: 60, tokensPerMinute: 40_000 },
      expiresAt: '2099-01-01T00:00:00Z',
    })
    expect((await only()).spec).toMatchObject({
      displayName: 'docs-search',
      models: ['*'],
      budgets: [{ name: 'own', unit: 'Currency', amount: '25', window: 'Month', onExceeded: 'Block' }],
      limits: { requestsPerMinute: 60, tokensPerMinute: 40_000 },
      expirationTime: '2099-01-01T00:00:00Z',
    })
  })

  test('is made once by an attempt that is repeated, also at the same moment', async () => {
    const visits = await Promise.all(Array.from({ length: 5 }, async () => await create(maya, FORM, ATTEMPT)))
    expect(visits.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409, 409, 409, 409])
    const { metadata } = await only()
    const again = await create(maya, { ...FORM, name: 'another' }, ATTEMPT)
    expect(again.json().error).toMatchObject({ code: 'conflict', fields: { key: metadata.name } })
    expect(again.json().error.message).toBe('Already created. Its value cannot be shown again.')
  })

  test('is another one for another person with the same attempt', async () => {
    const sam = await world.person('sam@fernwood.example')
    expect([(await create(maya, FORM, ATTEMPT)).status, (await create(sam, FORM, ATTEMPT)).status]).toEqual([200, 200])
  })

  test('is refused where the plan has no room, and revoked ones take none', async () => {
    for (let made = 0; made < 2; made += 1) await create(maya)
    await create(maya, FORM, ATTEMPT)
    expect((await create(maya, FORM, ATTEMPT)).json().error.message).toContain('Already created')
    const refused = await create(maya)
    expect([refused.status, refused.json().error.message]).toEqual([
      409,
      'Your plan allows 3 keys, and you have 3. Revoke one that is not used, or ask your administrator.',
    ])
    const [first] = await stored()
    await maya.call('POST', `/api/keys/${first?.metadata.name}/revoke`, { name: 'docs-search' })
    expect((await create(maya)).status).toBe(200)
  })

  test.each([
    [{ name: '' }, { name: 'Write a name.' }],
    [{ name: 'two\nlines' }, { name: 'Write the name on one line.' }],
    [{ name: 'x'.repeat(64) }, { name: 'Write at most 63 characters.' }],
    [{ models: [] }, { models: 'Choose at least one model.' }],
    [{ models: ['$'] }, { models: 'This is not a model name.' }],
    [{ budget: { amount: '-1', window: 'Month' } }, { budget: 'Write an amount like 25 or 2.50.' }],
    [{ budget: { amount: '1e999', window: 'Month' } }, { budget: 'Write an amount like 25 or 2.50.' }],
    [{ budget: { amount: '0', window: 'Month' } }, { budget: 'Write an amount above 0.' }],
    [{ budget: { amount: 5, window: 'Month' } }, { budget: 'Write an amount.' }],
    [{ budget: { amount: '5', window: 'Year' } }, { budget: 'Choose when the budget starts again.' }],
    [{ requestsPerMinute: 0 }, { requestsPerMinute: 'Write 1 or more.' }],
    [{ requestsPerMinute: 1.5 }, { requestsPerMinute: 'Write a whole number.' }],
    [{ requestsPerMinute: 1e10 }, { requestsPerMinute: 'This number is too large.' }],
    [{ tokensPerMinute: '60' }, { tokensPerMinute: 'Write a whole number.' }],
    [{ expiresAt: '2020-01-01T00:00:00Z' }, { expiresAt: 'Choose a time in the future.' }],
    [{ expiresAt: 'tomorrow' }, { expiresAt: 'Write a date.' }],
    [{ source: { type: 'Generated' } }, { form: expect.any(String) }],
  ])('with %j is refused at its field, and nothing is made', async (wrong, fields) => {
    const refused = await create(maya, { ...FORM, ...wrong })
    expect([refused.status, refused.json().error.fields]).toEqual([422, fields])
    expect(await stored()).toEqual([])
  })
})

test('a form with thousands of models is refused', async () => {
  for (const count of [257, 20_000]) expect((await create(maya, { ...FORM, models: Array<string>(count).fill('m') })).status).toBe(422)
  expect(await stored()).toEqual([])
})

describe('a key', () => {
  test('is edited as often as a person would, and is suspended and revoked however often it was edited', async () => {
    const { key } = (await create(maya)).json()
    const edits = await Promise.all(Array.from({ length: 200 }, () => maya.call('PATCH', `/api/keys/${key.id}`, FORM)))
    const refused = edits.find(({ status }) => status === 429)
    expect(refused?.headers.get('retry-after')).toBe('1')
    for (const act of ['suspend', 'revoke'])
      expect((await maya.call('POST', `/api/keys/${key.id}/${act}`, { name: FORM.name })).status).toBe(200)
    const sam = await world.person('sam@fernwood.example')
    expect((await create(sam)).status).toBe(200)
  })

  let id: string
  beforeEach(async () => (id = (await create(maya)).json().key.id))

  test.each([
    ['GET', '', undefined],
    ['PATCH', '', FORM],
    ['POST', '/suspend', {}],
    ['POST', '/resume', {}],
    ['POST', '/revoke', { name: 'docs-search' }],
    ['POST', '/replace', { overlapSeconds: 0 }],
    ['POST', '/end-former', {}],
  ])('of somebody else is not there: %s %s', async (method, path, body) => {
    const sam = await world.person('sam@fernwood.example')
    const before = await only()
    const foreign = await sam.call(method, `/api/keys/${id}${path}`, body)
    const absent = await sam.call(method, `/api/keys/k-0123456789abcdef0123${path}`, body)
    expect([foreign.status, foreign.json().error.code, foreign.json().error.message]).toEqual([
      404,
      'not-found',
      absent.json().error.message,
    ])
    expect(await only()).toEqual(before)
    expect((await sam.get('/api/keys')).json().keys).toEqual([])
  })

  test('is edited by the same fields, and what the form does not have stays', async () => {
    const { spec } = await only()
    const more = {
      ...spec,
      limits: { maxConcurrentRequests: 4 },
      budgets: [{ name: 'tokens', unit: 'Tokens', amount: '1000', window: 'Day' }],
    }
    await world.store.patch(apiKeys, { namespace: NAMESPACE, name: id }, [{ op: 'replace', path: '/spec', value: more }])
    const edited = await maya.call('PATCH', `/api/keys/${id}`, {
      ...FORM,
      name: 'renamed',
      requestsPerMinute: 5,
      budget: { amount: '2.50', window: 'Day' },
    })
    expect(edited.json()).toMatchObject({ name: 'renamed' })
    expect((await only()).spec).toMatchObject({
      displayName: 'renamed',
      limits: { requestsPerMinute: 5, maxConcurrentRequests: 4 },
      budgets: [{ name: 'own', amount: '2.50' }, { name: 'tokens' }],
      source: spec.source,
      accountRef: spec.accountRef,
    })
    await maya.call('PATCH', `/api/keys/${id}`, FORM)
    expect((await only()).spec).toMatchObject({ limits: { maxConcurrentRequests: 4 }, budgets: [{ name: 'tokens' }] })
    expect((await only()).spec.limits).toEqual({ maxConcurrentRequests: 4 })
  })

  test('is suspended and resumed, and its page says how far that has come', async () => {
    await report(await only(), 'Ready')
    expect((await maya.get(`/api/keys/${id}`)).json().state).toBe('Active')
    expect((await maya.call('POST', `/api/keys/${id}/suspend`, {})).json()).toMatchObject({ state: 'Suspending', wanted: 'Suspended' })
    await report(await only(), 'Suspended', false)
    expect((await maya.get(`/api/keys/${id}`)).json()).toMatchObject({ state: 'Suspending', programmed: { ready: 2, total: 3 } })
    await report(await only(), 'Suspended')
    expect((await maya.get(`/api/keys/${id}`)).json()).toMatchObject({ state: 'Suspended', programmed: { ready: 3, total: 3 } })
    expect((await maya.call('POST', `/api/keys/${id}/resume`, {})).json()).toMatchObject({ state: 'Activating', wanted: 'Active' })
  })

  test('is revoked for good by its name alone', async () => {
    const refused = await maya.call('POST', `/api/keys/${id}/revoke`, { name: 'docs' })
    expect([refused.status, refused.json().error.fields]).toEqual([422, { name: 'Write docs-search to confirm.' }])
    expect((await maya.call('POST', `/api/keys/${id}/revoke`, { name: ' docs-search ' })).json().state).toBe('Revoking')
    await report(await only(), 'Revoked')
    expect((await maya.get(`/api/keys/${id}`)).json().state).toBe('Revoked')
    for (const path of ['resume', 'suspend']) expect((await maya.call('POST', `/api/keys/${id}/${path}`, {})).status).toBe(409)
    expect((await maya.call('POST', `/api/keys/${id}/replace`, { overlapSeconds: 0 })).status).toBe(409)
    expect((await maya.get('/api/keys')).json()).toMatchObject({ used: 0, most: 3, keys: [{ id }] })
  })

  test('that an administrator made for the account is shown, and cannot be changed', async () => {
    const [account] = await world.store.list(accounts, '')
    const spec = { ...(await only()).spec, displayName: 'of GitOps', accountRef: { name: account?.metadata.name ?? '' } }
    await world.store.create(apiKeys, { ...(await only()), metadata: { name: 'of-gitops', namespace: NAMESPACE }, spec })
    const { keys } = (await maya.get('/api/keys')).json()
    expect(keys.map((key: Record<string, unknown>) => [key['name'], key['isManaged']]).toSorted()).toEqual([
      ['docs-search', false],
      ['of GitOps', true],
    ])
    const calls = { suspend: {}, revoke: { name: 'of GitOps' }, replace: { overlapSeconds: 0 } }
    for (const [path, body] of Object.entries(calls))
      expect((await maya.call('POST', `/api/keys/of-gitops/${path}`, body)).status).toBe(409)
    expect((await maya.call('PATCH', '/api/keys/of-gitops', FORM)).status).toBe(409)
  })

  test('gets another value, and the former one works as long as the person says', async () => {
    const before = await only()
    const { value } = (await maya.call('POST', `/api/keys/${id}/replace`, { overlapSeconds: 3_600 })).json()
    const after = await only()
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(after.spec.source?.hash?.sha256).toBe(hexOf(hashCredential(value)))
    expect(after.spec.rotation).toEqual({ overlapSeconds: 3_600 })
    await maya.call('POST', `/api/keys/${id}/end-former`, {})
    expect((await only()).spec).toEqual({ ...after.spec, rotation: { overlapSeconds: 0 } })
    for (const overlapSeconds of [1, -1, 1e9, '0', undefined])
      expect((await maya.call('POST', `/api/keys/${id}/replace`, { overlapSeconds })).status).toBe(422)
  })
})

describe('what holds', () => {
  test('is the smallest of key and plan, with its owner, and follows an edit of the plan at once', async () => {
    const { id } = (await create(maya, { ...FORM, requestsPerMinute: 200, budget: { amount: '25', window: 'Month' } })).json().key
    const limits = async (): Promise<unknown> => (await maya.get(`/api/keys/${id}`)).json().limits
    expect(await limits()).toEqual([{ limit: 'requestsPerMinute', value: 200, owner: 'key' }])
    const spec = plan({
      perKey: { limits: { ceiling: { requestsPerMinute: 60, tokensPerMinute: 5 } }, budgets: [budgetOf('each', '5.00', 'Day')] },
      perAccount: { budgets: [budgetOf('all', '300.00', 'Month')] },
    }).spec
    await world.store.patch(plans, { namespace: '', name: 'default' }, [{ op: 'replace', path: '/spec', value: spec }])
    expect(await limits()).toEqual([
      { limit: 'requestsPerMinute', value: 60, owner: 'plan', asked: 200 },
      { limit: 'tokensPerMinute', value: 5, owner: 'plan' },
    ])
    const { budgets } = (await maya.get(`/api/keys/${id}`)).json()
    expect(budgets.map((one: Record<string, unknown>) => [one['name'], one['owner'], one['amount'], one['isShared']])).toEqual([
      ['own', 'key', '25.00', false],
      ['each', 'plan', '5.00', false],
      ['all', 'plan', '300.00', true],
    ])
    expect(Date.parse(budgets[0].resetsAt)).toBeGreaterThan(Date.now())
  })

  test('is said by the plan: how many keys, and which limits for each and for all', async () => {
    expect((await maya.get('/api/plan')).json()).toMatchObject({ name: 'default', most: 3, models: [], currency: 'EUR' })
  })
})

function budgetOf(name: string, amount: string, window: 'Day' | 'Month') {
  return { name, amount, unit: 'Currency', window, onExceeded: 'Block' } as const
}
