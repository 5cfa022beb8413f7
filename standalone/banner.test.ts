import { describe, expect, it } from 'vitest'
import type { ApiKey } from '../operator/api/apikey.ts'
import type { ServedModel } from '../operator/api/served-model.ts'
import { curlLine as curlLineOf, isReady, limitsLine, modelNames, startBanner } from './banner.ts'

const model = (name: string, namespace: string, from: 'Same' | 'All' = 'Same'): ServedModel => ({
  apiVersion: 'headgate.dev/v1alpha1',
  kind: 'ServedModel',
  metadata: { name, namespace },
  spec: {
    allowedNamespaces: { from },
    backends: [],
    aliases: [`${name}-latest`],
    timeouts: { firstByteSeconds: 1, idleSeconds: 1, totalSeconds: 1 },
  },
})
const key = (models = ['*']): ApiKey => ({
  apiVersion: 'headgate.dev/v1alpha1',
  kind: 'ApiKey',
  metadata: { name: 'bot', namespace: 'shop' },
  spec: { state: 'Active', models },
})
const FILE = '.headgate/secrets/shop/bot/SERVICE_API_KEY'

const curlLine = (baseURL: string, apiKey: ApiKey, secretFile: string, models: readonly ServedModel[]): string =>
  curlLineOf({ baseURL, key: apiKey, secretFile, models })

describe('what make run prints', () => {
  it('is one command per key that reads the key from its file', () => {
    expect(curlLine('http://127.0.0.1:8080', key(['b*']), FILE, [model('a', 'shop'), model('b', 'shop')])).toBe(
      `ApiKey shop/bot is ready:\n\n  curl http://127.0.0.1:8080/v1/chat/completions \\\n    -H "Authorization: Bearer $(cat ${FILE})" \\\n` +
        `    -H 'Content-Type: application/json' \\\n    -d '{"model":"b","messages":[{"role":"user","content":"Good morning!"}]}'\n\n`,
    )
  })

  it('asks for a model that the key may use: one of its namespace first, else one that other namespaces may use', () => {
    expect(curlLine('x', key(), FILE, [model('all', 'lab', 'All'), model('own', 'shop')])).toContain('"model":"own"')
    expect(curlLine('x', key(), FILE, [model('private', 'lab'), model('all', 'lab', 'All')])).toContain('"model":"all"')
    expect(curlLine('x', key(['other']), FILE, [model('own', 'shop')])).toContain('"model":"<model>"')
  })

  it('tells the limits of a key, with a loop that reaches them where a person can wait for it', () => {
    const limited = (spec: Partial<ApiKey['spec']>): string =>
      limitsLine({
        baseURL: 'http://u',
        key: { ...key(), spec: { ...key().spec, ...spec } },
        secretFile: FILE,
        models: [model('a', 'shop')],
      })
    const call = `curl -s -o /dev/null -w '%{http_code} ' http://u/v1/chat/completions -H "Authorization: Bearer $(cat ${FILE})"`
    expect(limited({ limits: { requestsPerMinute: 5, maxConcurrentRequests: 2 } })).toBe(
      `  Its limits: 5 requests a minute, 2 requests at a time. This loop reaches them; the last answer is 429:\n\n` +
        `  for i in $(seq 6); do ${call} -H 'Content-Type: application/json'` +
        ` -d '{"model":"a","messages":[{"role":"user","content":"Good morning!"}]}'; done; echo\n\n`,
    )
    expect(limited({ limits: { requestsPerMinute: 10_000, tokensPerMinute: 7 } })).toBe(
      '  Its limits: 10000 requests a minute, 7 tokens a minute.\n\n',
    )
    const budget = { name: 'day', amount: '9', unit: 'Tokens', window: 'Day', onExceeded: 'Block' } as const
    expect(limited({ budgets: [budget] })).toBe('  Its limits: budget day: 9 tokens (Day).\n\n')
    expect(limited({})).toBe('')
  })

  it('begins with the base URL and the models', () => {
    expect(startBanner('http://127.0.0.1:1', modelNames([model('b', 'shop'), model('a', 'shop')]), 'm')).toContain(
      'http://127.0.0.1:1/v1 (models: a, a-latest, b, b-latest)',
    )
    expect(startBanner('u', [], 'm')).toContain('no models yet')
  })

  it('waits until a key is Ready', () => {
    const condition = (status: 'True' | 'False') => ({
      type: 'Ready',
      status,
      reason: 'x',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    })
    expect([undefined, key(), { ...key(), status: { conditions: [condition('False')] } }].map(isReady)).toEqual([false, false, false])
    expect(isReady({ ...key(), status: { conditions: [condition('True')] } })).toBe(true)
  })
})
