import { describe, expect, test } from 'vitest'
import { Misconfigured } from '#platform/lifecycle.ts'
import { loadConfig } from './config.ts'

const SOUND = { NAMESPACE: 'headgate', POD_NAME: 'operator-0', REDIS_URL: 'redis://redis:6379', PUBLIC_URL: 'https://models.example' }

function errorOf(env: NodeJS.ProcessEnv): string {
  try {
    loadConfig(env)
  } catch (error) {
    if (error instanceof Misconfigured) return error.message
    throw error
  }
  return ''
}

describe('settings of the operator', () => {
  test('four are enough', () => {
    expect(loadConfig(SOUND)).toMatchObject({
      ...{ namespace: 'headgate', podName: 'operator-0', publicURL: 'https://models.example', keyringShards: 64 },
      ...{ watchNamespaces: [], formerNamespaces: [], publishingNamespaces: ['headgate'], readsNamespaces: true },
      ...{ revocationWaitMs: 30_000, leaseTimes: { durationMs: 15_000, renewMs: 10_000, retryMs: 2_000 }, redisTakeOver: false },
      redis: { url: 'redis://redis:6379', username: undefined, password: undefined, caFile: undefined },
    })
  })

  test('become what the program needs: lists, flags, ms', () => {
    const lease = { LEASE_DURATION_SECONDS: '3', LEASE_RENEW_SECONDS: '2', LEASE_RETRY_SECONDS: '0.5' }
    const config = loadConfig({
      ...SOUND,
      ...lease,
      WATCH_NAMESPACES: 'shop, blog,',
      REVOCATION_WAIT_SECONDS: '60',
      REDIS_TAKE_OVER: 'true',
    })
    expect(config).toMatchObject({
      ...{ watchNamespaces: ['shop', 'blog'], readsNamespaces: false, revocationWaitMs: 60_000, redisTakeOver: true },
      leaseTimes: { durationMs: 3_000, renewMs: 2_000, retryMs: 500 },
    })
    expect(loadConfig({ ...SOUND, WATCH_NAMESPACES: 'shop', NAMESPACE_LABELS: 'true' }).readsNamespaces).toBe(true)
  })

  test('name the currency, which is USD unless one is set, and the low balance in micro-units', () => {
    const { billingCurrency, billingLowBalance } = loadConfig(SOUND)
    expect([billingCurrency, billingLowBalance]).toEqual(['USD', undefined])
    const billing = { BILLING_CURRENCY: 'EUR', BILLING_LOW_BALANCE: '4503599.627371' }
    expect(loadConfig({ ...SOUND, ...billing })).toMatchObject({ billingCurrency: 'EUR', billingLowBalance: 4_503_599_627_371 })
  })

  test.each(['https://models.example', 'https://models.example/', 'https://models.example/v1', 'https://models.example/v1/'])(
    'PUBLIC_URL %s is taken without slash and /v1, which each client appends itself',
    (PUBLIC_URL) => {
      expect(loadConfig({ ...SOUND, PUBLIC_URL }).publicURL).toBe('https://models.example')
    },
  )

  test('a path before /v1 stays', () => {
    expect(loadConfig({ ...SOUND, PUBLIC_URL: 'https://models.example/llm/v1' }).publicURL).toBe('https://models.example/llm')
  })

  test('a password in a wrong URL is not printed', () => {
    expect(errorOf({ ...SOUND, REDIS_URL: 'http://user:hunter2@redis' })).not.toContain('hunter2')
  })

  test.each([
    ['a name of a Service', { GATEWAY_SERVICE: 'Not A Name' }],
    ['a namespace', { NAMESPACE: 'Not_A_Name' }],
    ['namespaces to watch', { WATCH_NAMESPACES: 'shop,Not A Name' }],
    ['a key prefix', { REDIS_KEY_PREFIX: 'a b' }],
    ['a number of shards', { KEYRING_SHARDS: 'many' }],
    ['a bound of revocation', { REVOCATION_WAIT_SECONDS: '0' }],
    ['a currency', { BILLING_CURRENCY: 'euro' }],
    ['a low balance with a sign', { BILLING_LOW_BALANCE: '-1' }],
    ['a low balance with an exponent', { BILLING_LOW_BALANCE: '1e3' }],
  ])('what is no %s is refused', (_what, change) => {
    expect(errorOf({ ...SOUND, ...change })).toContain(Object.keys(change)[0])
  })

  test.each([
    ['the leader would give up after a standby took over', { LEASE_DURATION_SECONDS: '10', LEASE_RENEW_SECONDS: '10' }],
    ['the leader would give up before it tried again', { LEASE_RENEW_SECONDS: '2', LEASE_RETRY_SECONDS: '1.7' }],
  ])('times of the Lease by which %s are refused with the rule', (_what, change) => {
    expect(errorOf({ ...SOUND, ...change })).toContain('LEASE_DURATION_SECONDS > LEASE_RENEW_SECONDS > 1.2 × LEASE_RETRY_SECONDS')
  })
})
