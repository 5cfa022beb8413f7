import type { Server } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { countsOf } from '#contract/usage/usage-report.ts'
import { KubeError, type KubeObject } from '#kube/port.ts'
import { listening } from '../../test/support/listening.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KubeUsageAccess, LOOPBACK_ACCESS, USAGE_AUDIENCE } from './usage-access.ts'
import { noOpenUsage, withTaken } from './usage-book.ts'
import type { AccountLedger } from './ledger-reader.ts'
import { EntriesUnreadable } from './secret-reader.ts'
import { createUsageServer } from './usage-server.ts'

const NOW = Date.UTC(2026, 10, 26, 12)
const DAY = Math.floor(NOW / 86_400_000)
let clock: ManualClock
let server: Server
let url: string
let reviews: { readonly kind: string; readonly spec: Record<string, unknown> }[]
let isAway: boolean
let lines: string[]
let isStoreAway = false
let readLedger: (account: string) => Promise<AccountLedger | undefined>

/** An API server that knows the token `good-<name>`, whose user may read the account <name>. */
function review({ kind, spec }: { readonly kind: string; readonly spec: Record<string, unknown> }): unknown {
  reviews.push({ kind, spec })
  if (isAway) throw new KubeError('Unreachable', 0, 'the API server does not answer')
  const [, name] = /^good-(.*)$/.exec(String(spec['token'])) ?? []
  if (kind === 'TokenReview')
    return name === undefined
      ? { error: 'no' }
      : { authenticated: true, audiences: spec['audiences'], user: { username: name, groups: ['g'] } }
  return { allowed: (spec['resourceAttributes'] as { name: string }).name === spec['user'] }
}

beforeEach(async () => {
  clock = new ManualClock(NOW)
  reviews = []
  lines = []
  isAway = false
  readLedger = () => Promise.resolve(undefined)
  isStoreAway = false
  const kube = {
    create: <T extends KubeObject>(_: unknown, object: T) =>
      new Promise<T>((resolve) => resolve({ ...object, status: review(object as unknown as Parameters<typeof review>[0]) })),
  }
  const rows = [{ day: DAY, key: 'k', model: 'llama', counts: countsOf({ requests: 2 }) }]
  const open = withTaken(noOpenUsage('acme'), { state: 'rows', nowMs: NOW, number: 1, rows }, -1, () => 'shop/bot')
  server = createUsageServer({
    access: new KubeUsageAccess(kube, clock),
    read: (account) => Promise.resolve({ open: account === 'acme' ? open : undefined, closed: undefined }),
    readLedger: (account) => readLedger(account),
    currency: () => Promise.resolve('EUR'),
    isStoreAway: () => isStoreAway,
    clock,
    outage: { failed: (line) => void lines.push(line), works: () => undefined },
  })
  url = `http://127.0.0.1:${await listening(server)}`
})
afterEach(() => {
  server.close()
  server.closeAllConnections()
})

async function get(path: string, token?: string, init: RequestInit = {}): Promise<{ status: number; text: string; headers: Headers }> {
  const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...(init.headers as Record<string, string>) }
  const response = await fetch(`${url}${path}`, { ...init, headers })
  return { status: response.status, text: await response.text(), headers: response.headers }
}
const USAGE = '/usage/v1/accounts/acme'

describe('the usage of an account', () => {
  test('is JSON, or CSV for those who ask for it', async () => {
    const { status, text, headers } = await get(`${USAGE}?by=key,model`, 'good-acme')
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(JSON.parse(text)).toMatchObject({
      account: 'acme',
      asOf: '2026-11-26T12:00:00.000Z',
      rows: [{ key: 'shop/bot', model: 'llama', requests: 2, cost: '0.00' }],
    })
    for (const [path, init] of [
      [`${USAGE}?format=csv`, {}],
      [USAGE, { headers: { accept: 'text/csv' } }],
    ] as const) {
      const csv = await get(path, 'good-acme', init)
      expect([csv.headers.get('content-type'), csv.text.startsWith('day,model,key,keyUID,requests,')]).toEqual([
        'text/csv; charset=utf-8',
        true,
      ])
    }
  })

  test('says while Redis is away that newer counts are missing', async () => {
    expect(JSON.parse((await get(USAGE, 'good-acme')).text)).not.toHaveProperty('isLate')
    isStoreAway = true
    expect(JSON.parse((await get(USAGE, 'good-acme')).text)).toMatchObject({ isLate: true, rows: [{ requests: 2 }] })
  })

  test('shows to callers whose token the API server knows for this audience, and who may get accounts/usage', async () => {
    expect((await get(USAGE)).status).toBe(401)
    expect(await get(USAGE, 'bad')).toMatchObject({ status: 401, text: expect.stringContaining(`--audience ${USAGE_AUDIENCE}`) })
    const other = await get(USAGE, 'good-other')
    expect([other.status, other.text]).toEqual([403, expect.stringContaining('other may not read the usage of this account')])
    expect(reviews.at(-1)).toMatchObject({
      kind: 'SubjectAccessReview',
      spec: {
        user: 'other',
        groups: ['g'],
        resourceAttributes: { group: 'headgate.dev', resource: 'accounts', subresource: 'usage', name: 'acme', verb: 'get' },
      },
    })
    expect(reviews.find(({ kind }) => kind === 'TokenReview')?.spec).toEqual({ token: 'bad', audiences: [USAGE_AUDIENCE] })
  })

  test('costs the API server one review of each kind in ten seconds, for each token and account', async () => {
    for (let at = 0; at < 5; at += 1) await get(USAGE, 'good-acme')
    expect(reviews).toHaveLength(2)
    await get('/usage/v1/accounts/other', 'good-acme')
    expect(reviews).toHaveLength(4)
    clock.skip(10_001)
    await get(USAGE, 'good-acme')
    expect(reviews).toHaveLength(6)
  })

  test('is 503 while the API server does not answer, never 401, and the next call asks again', async () => {
    isAway = true
    const away = await get(USAGE, 'good-acme')
    expect([away.status, away.headers.get('retry-after'), lines]).toEqual([
      503,
      '2',
      ['usage cannot be read: the API server does not answer'],
    ])
    isAway = false
    expect((await get(USAGE, 'good-acme')).status).toBe(200)
  })

  test.each([
    ['/', 404],
    ['/usage/v1/accounts/', 404],
    ['/usage/v1/accounts/Acme', 404],
    ['/usage/v1/accounts/acme/x', 404],
    ['/usage/v1/accounts/acme/ledger/', 404],
    ['/usage/v1/accounts/ledger/ledger/ledger', 404],
    ['/usage/v1/accounts/..%2f', 404],
    [`${USAGE}?from=x`, 400],
  ])('GET %s answers %i', async (path, status) => {
    expect((await get(path, 'good-acme')).status).toBe(status)
  })

  test('of `make run` shows to a host of loopback alone', async () => {
    const statuses = ['127.0.0.1:8080', 'localhost', 'evil.example', '127.0.0.1.evil.example', undefined].map(async (host) => {
      const refusal = await LOOPBACK_ACCESS.check(host === undefined ? {} : { host }, 'acme', 'usage')
      return refusal?.status
    })
    expect(await Promise.all(statuses)).toEqual([undefined, undefined, 403, 403, 403])
  })

  test('cannot be written', async () => {
    expect(await get(USAGE, 'good-acme', { method: 'POST' })).toMatchObject({ status: 405 })
    expect(await get(USAGE, 'good-acme', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' })
  })
})

describe('the ledger of an account', () => {
  const LEDGER = `${USAGE}/ledger`
  const credit = { id: 'pay-1', account: 'acme', micros: 25_000_000, type: 'TopUp', time: '2026-11-20T10:00:00Z', reference: 'pi_1' }
  const ledger = {
    book: { openFrom: 1, closedSpend: 1_500_000n, spent: new Map([['1:a', 500_000]]) },
    credits: [credit],
    usage: { open: undefined, closed: undefined },
  } as unknown as AccountLedger

  beforeEach(() => {
    readLedger = (account) => Promise.resolve(account === 'acme' ? ledger : undefined)
  })

  test('is JSON, or CSV for those who ask for it', async () => {
    const { status, text } = await get(LEDGER, 'good-acme')
    expect([status, JSON.parse(text)]).toEqual([
      200,
      {
        ...{ account: 'acme', currency: 'EUR', asOf: '2026-11-26T12:00:00.000Z', incomplete: [] },
        balance: expect.stringMatching(/^23(\.00)?$/),
        credits: expect.stringMatching(/^25(\.00)?$/),
        spent: expect.stringMatching(/^2(\.00)?$/),
        rows: [
          { time: '', type: 'Spend', id: '', reference: 'earlier or not itemised', amount: expect.stringMatching(/^-2(\.00)?$/) },
          { time: credit.time, type: 'TopUp', id: 'pay-1', reference: 'pi_1', amount: expect.stringMatching(/^25(\.00)?$/) },
        ],
      },
    ])
    const csv = await get(`${LEDGER}?format=csv`, 'good-acme')
    expect([csv.headers.get('content-type'), csv.text.split('\r\n')[0]]).toEqual([
      'text/csv; charset=utf-8',
      'time,type,id,reference,amount',
    ])
  })

  test('needs the verb get on accounts/ledger: the right to read usage opens no ledger', async () => {
    await get(USAGE, 'good-acme')
    await get(LEDGER, 'good-acme')
    const asked = reviews.filter(({ kind }) => kind === 'SubjectAccessReview').map(({ spec }) => spec['resourceAttributes'])
    expect(asked).toMatchObject([
      { resource: 'accounts', subresource: 'usage', name: 'acme', verb: 'get' },
      { resource: 'accounts', subresource: 'ledger', name: 'acme', verb: 'get' },
    ])
    const other = await get(LEDGER, 'good-other')
    expect([other.status, other.text]).toEqual([403, expect.stringContaining('the verb get on accounts/ledger of headgate.dev')])
    expect((await get(LEDGER)).status).toBe(401)
  })

  test('is 404 for a name without books, and 400 for a part of it', async () => {
    expect(await get('/usage/v1/accounts/other/ledger', 'good-other')).toMatchObject({
      status: 404,
      text: expect.stringContaining('accepted'),
    })
    expect(await get(`${LEDGER}?from=2026-11-01`, 'good-acme')).toMatchObject({ status: 400, text: expect.stringContaining('from') })
  })

  test('is 503 with the Secret and the remedy where a part of it cannot be read, and never a sum without that part', async () => {
    readLedger = () => Promise.reject(new EntriesUnreadable('hg-credits-8-3', '2 damaged entries'))
    const { status, text, headers } = await get(LEDGER, 'good-acme')
    expect([status, headers.get('retry-after'), JSON.parse(text)]).toEqual([
      503,
      '2',
      { error: { message: expect.stringContaining('the Secret hg-credits-8-3 has 2 damaged entries; restore it') } },
    ])
    expect(lines).toHaveLength(1)
  })
})
