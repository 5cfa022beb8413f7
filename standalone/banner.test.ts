import { describe, expect, it } from 'vitest'
import type { ApiKey } from '#api/apikey.ts'
import { curlLine, limitsLine, moreKeysLine, startBanner, type StartFacts, stoppedLine } from './banner.ts'
import { loadConfig } from './config.ts'

const key = (spec: Partial<ApiKey['spec']> = {}): ApiKey => ({
  apiVersion: 'headgate.dev/v1alpha1',
  kind: 'ApiKey',
  metadata: { name: 'bot', namespace: 'shop' },
  spec: { state: 'Active', models: ['*'], ...spec },
})
const FILE = '.headgate/secrets/shop/bot/SERVICE_API_KEY'
const started = (facts: Partial<StartFacts> = {}): string =>
  startBanner({ baseURL: 'http://127.0.0.1:1', manifests: 'm', models: ['a', 'b'], unusable: [], keys: { total: 1, usable: 1 }, ...facts })

describe('the output of make run', () => {
  it('is one command per key that reads the key from its file', () => {
    expect(curlLine({ baseURL: 'http://127.0.0.1:8080', key: key(), secretFile: FILE, model: 'b' })).toBe(
      `ApiKey shop/bot is ready:\n\n  curl http://127.0.0.1:8080/v1/chat/completions \\\n    -H "Authorization: Bearer $(cat ${FILE})" \\\n` +
        `    -H 'Content-Type: application/json' \\\n    -d '{"model":"b","messages":[{"role":"user","content":"Good morning!"}]}'\n\n`,
    )
  })

  it('has a variable in place of a value that only its owner knows: a key with source.type Hash has no file', () => {
    const source = { type: 'Hash', hash: { sha256: 'a'.repeat(64) } } as const
    const line = curlLine({ baseURL: 'http://u', key: key({ source }), secretFile: FILE, model: 'b' })
    expect(line).toContain('"Authorization: Bearer $YOUR_KEY"')
    expect(line).not.toContain(FILE)
  })

  it('names the limits of a key, with a loop that reaches them if the loop is short enough', () => {
    const limited = (spec: Partial<ApiKey['spec']>): string =>
      limitsLine({ baseURL: 'http://u', key: key(spec), secretFile: FILE, model: 'a' })
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

  it('begins with the base URL and the models that can be called, and names the others with the reason', () => {
    expect(started()).toContain('running at http://127.0.0.1:1/v1 (models: a, b).\nEdit the manifests in m;')
    const broken = started({ models: [], unusable: ['demo/llama (ServiceNotFound)'], keys: { total: 1, usable: 0 } })
    expect(broken).toContain(
      '(no model can be called yet).\nNot usable: ServedModel demo/llama (ServiceNotFound).\nNo key can be used yet;',
    )
    const many = started({ models: Array.from({ length: 12 }, (_, index) => `m${index}`) })
    expect(many).toContain('m9 and 2 more)')
  })

  it('names the missing objects of an empty folder', () => {
    const empty = started({ models: [], keys: { total: 0, usable: 0 } })
    expect(empty).toContain('There is no ServedModel. Add one to m.\nThere is no ApiKey. Add one to m.\n')
  })

  it('counts the keys without a command of their own', () => {
    expect([moreKeysLine(1), moreKeysLine(7)]).toEqual([
      '1 more key is ready; `make status` lists them.\n\n',
      '7 more keys are ready; `make status` lists them.\n\n',
    ])
  })

  it('ends with the way to start again, without the password of a Redis', () => {
    const stopped = (env: Record<string, string>): string => stoppedLine(loadConfig(env), '.headgate')
    expect(stopped({})).toMatch(/^Headgate has stopped\. The keys keep their values in \.headgate\/secrets\. Start again with: make run\n$/)
    const changed = stopped({ PORT: '0', MANIFESTS: "it's mine", REDIS_URL: 'redis://:hush@x', MODEL_URL: 'http://m:1', HOST: '::' })
    expect(changed).toContain(`with: PORT=0 HOST='::' MANIFESTS='it'\\''s mine' REDIS_URL=... MODEL_URL=http://m:1 make run\n`)
    expect(changed).not.toContain('hush')
  })
})
