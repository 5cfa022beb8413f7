/** Usage of accounts on a real API server and Redis: what gateways counted is what the model server reported, whatever happens between. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, smallBody } from '../support/ask.ts'
import { atOnce } from '../support/at-once.ts'
import { CountingModel } from '../support/counting-model.ts'
import { openLab } from '../support/lab.ts'
import type { Program } from '../support/program.ts'
import type { Stack } from '../support/stack.ts'
import { eventually } from '../support/wait-for.ts'

const lab = openLab()
const CALLS = 5_000
const AUDIENCE = 'headgate-usage'
let stack: Stack
let model: CountingModel
/** ServiceAccounts that may read the usage of one account each. */
const tokens = new Map<string, string>()

interface Totals {
  readonly requests: number
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly refusedModel: number
  readonly failed: number
}

interface UsageAnswer {
  readonly incomplete: readonly string[]
  readonly rows: readonly (Totals & { readonly key?: string; readonly cost: string })[]
}

async function readerOf(account: string): Promise<void> {
  const metadata = { name: `reads-${account}` }
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', ...metadata }
  const subjects = [{ kind: 'ServiceAccount', name: metadata.name, namespace: stack.operatorNamespace }]
  const rules = [{ apiGroups: ['headgate.dev'], resources: ['accounts/usage'], resourceNames: [account], verbs: ['get'] }]
  await stack.kube.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...metadata, namespace: stack.operatorNamespace } })
  await stack.kube.apply({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata, rules })
  await stack.kube.apply({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata, roleRef, subjects })
  tokens.set(account, await tokenOf(metadata.name, [AUDIENCE]))
}

async function tokenOf(serviceAccount: string, audiences?: readonly string[]): Promise<string> {
  const path = `/api/v1/namespaces/${stack.operatorNamespace}/serviceaccounts/${serviceAccount}/token`
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: serviceAccount },
    spec: { audiences, expirationSeconds: 3_600 },
  }
  const { status } = await stack.kube.call('POST', path, request)
  return (status as { token: string }).token // TokenRequest always answers with one
}

async function get(operator: Program, account: string, token: string | undefined, query = 'by='): Promise<Response> {
  return await fetch(`${operator.usageUrl}/usage/v1/accounts/${account}?${query}`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  })
}

async function usage(account: string, query?: string, operator = stack.operator): Promise<UsageAnswer> {
  const answer = await get(operator, account, tokens.get(account), query)
  expect(answer.status).toBe(200)
  return (await answer.json()) as UsageAnswer
}

beforeAll(async () => {
  const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
  stack = await lab.stack({ gateways: 2, operators: 2, operatorEnv: { ACCOUNTS: 'true' } }, plane)
  model = await CountingModel.start(lab.address.ip)
  const backends = [{ name: 'counting', url: model.url, messages: 'Native' }]
  const pricing = { inputPerMillion: '1000', cachedInputPerMillion: '500', outputPerMillion: '2000' }
  await stack.serveModel('counted', { backends, pricing, contextTokens: 8_192 })
  await stack.apply('Plan', 'usage-plan')
  for (const name of ['usage-acme', 'usage-other']) {
    const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': stack.namespace } }
    await stack.apply('Account', name, { planRef: { name: 'usage-plan' }, namespaces })
    await stack.untilCondition('Account', name, 'Ready')
    await readerOf(name)
  }
})
afterAll(() => model.close())

describe('the usage of an account', () => {
  it(`is what the model server reported, over ${CALLS} calls of 3 keys, while the operator is killed and a key is deleted`, async () => {
    const names = ['usage-1', 'usage-2', 'usage-3']
    const credentials = await Promise.all(
      names.map((name) => stack.issueKey(name, { accountRef: { name: 'usage-acme' }, models: ['counted'] })),
    )
    let refused = 0
    const one = async (at: number): Promise<void> => {
      const [gateway, credential] = [stack.gateways[at % 2] ?? stack.gateway, credentials[at % 3] ?? '']
      const fields = { max_tokens: 1 + (at % 5), ...(at % 3 === 0 && { stream: true }) }
      if (at % 20 === 1) {
        refused += 1
        expect((await ask(lab, gateway.url, { credential, model: 'another', fields })).status).toBe(403)
      } else if (at % 20 === 3) await aborted(gateway, credential, fields)
      else expect((await ask(lab, gateway.url, { credential, model: 'counted', fields })).status).toBe(200)
    }
    const calls = atOnce(
      Array.from({ length: CALLS }, (_, at) => at),
      one,
    )
    const killed = stack.operators.find(({ spec }) => spec.pod)
    await killed?.kill()
    await killed?.start()
    await calls
    await stack.deleteKey('usage-3')
    await eventually(async () => {
      const { rows, incomplete } = await usage('usage-acme')
      expect(rows).toMatchObject([{ ...model.reported, refusedModel: refused, failed: 0 }])
      expect(incomplete).toEqual([])
    })
    const byKey = await usage('usage-acme', 'by=key')
    expect(new Set(byKey.rows.map(({ key }) => key))).toEqual(new Set(names.map((name) => `${stack.namespace}/${name}`)))
    const { inputTokens, cachedInputTokens, outputTokens } = model.reported
    const micros = 1_000 * (inputTokens - cachedInputTokens) + 500 * cachedInputTokens + 2_000 * outputTokens
    expect(Number((await usage('usage-acme')).rows[0]?.cost)).toBeCloseTo(micros / 1_000_000, 6)
  }, 600_000)

  it('is answered by every replica, also by one that does not lead', async () => {
    const answers = await Promise.all(stack.operators.map((operator) => usage('usage-acme', 'by=', operator)))
    expect(answers).toHaveLength(2)
    expect(answers[0]?.rows).toEqual(answers[1]?.rows)
  })

  it('shows to nobody without the right: no token, a token for another audience, or the token of another account', async () => {
    const [operator] = stack.operators
    if (operator === undefined) throw new Error('no operator')
    const elsewhere = await tokenOf('reads-usage-acme')
    expect((await get(operator, 'usage-acme', undefined)).status).toBe(401)
    expect((await get(operator, 'usage-acme', 'x.y.z')).status).toBe(401)
    expect((await get(operator, 'usage-acme', elsewhere)).status).toBe(401)
    expect((await get(operator, 'usage-acme', tokens.get('usage-other'))).status).toBe(403)
    expect((await get(operator, 'usage-acme', tokens.get('usage-acme'))).status).toBe(200)
  })

  it('lacks at most ten seconds after Redis was emptied, and says so', async () => {
    const credential = await stack.issueKey('usage-4', { accountRef: { name: 'usage-other' }, models: ['counted'] })
    const calls = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1) {
        const call = (): Promise<number> => ask(lab, stack.gateway.url, { credential, model: 'counted' }).then(({ status }) => status)
        await eventually(async () => expect(await call()).toBe(200))
      }
    }
    await calls(20)
    await eventually(async () => expect((await usage('usage-other')).rows).toMatchObject([{ requests: 20 }]))
    await stack.redis.admin.flushall()
    await calls(1)
    await eventually(async () => expect((await usage('usage-other')).incomplete).toHaveLength(1))
    const before = (await usage('usage-other')).rows[0]?.requests ?? 0
    expect([before >= 20, before <= 21]).toEqual([true, true])
    await calls(5)
    await eventually(async () => expect((await usage('usage-other')).rows).toMatchObject([{ requests: before + 5 }]))
  })
})

/** Ends the call as soon as its first event has arrived. */
async function aborted(gateway: Program, credential: string, fields: object): Promise<void> {
  const leaving = new AbortController()
  const body = JSON.stringify({ ...smallBody('counted', { ...fields, stream: true }), messages: [{ role: 'user', content: 'be silent' }] })
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body, signal: leaving.signal })
  expect(answer.status).toBe(200)
  await answer.body?.getReader().read()
  leaving.abort()
}
