import { describe, expect, it } from 'vitest'
import type { ApiKey } from '#api/apikey.ts'
import { apiKey } from '../test/support/objects.ts'
import { curlLine, limitsLine, startBanner, type StartFacts, stoppedLine } from './banner.ts'
import { loadConfig } from './config.ts'

const FILE = '.headgate/secrets/shop/bot/SERVICE_API_KEY'
const ready = (spec: Partial<ApiKey['spec']> = {}) => ({ baseURL: 'http://u', key: apiKey('bot', spec), secretFile: FILE, model: 'a' })
const started = (facts: Partial<StartFacts> = {}): string =>
  startBanner({ baseURL: 'http://127.0.0.1:1', manifests: 'm', models: ['a', 'b'], unusable: [], keys: { total: 1, usable: 1 }, ...facts })

describe('the output of make run', () => {
  it('has a variable in place of a value that only its owner knows: a key with source.type Hash has no file', () => {
    expect(curlLine(ready())).toContain(`"Authorization: Bearer $(cat ${FILE})"`)
    const line = curlLine(ready({ source: { type: 'Hash', hash: { sha256: 'a'.repeat(64) } } }))
    expect(line).toContain('"Authorization: Bearer $YOUR_KEY"')
    expect(line).not.toContain(FILE)
  })

  it('names the limits of a key, with a loop that reaches them if the loop is short enough', () => {
    const budget = { name: 'day', amount: '9', unit: 'Tokens', window: 'Day', onExceeded: 'Block' } as const
    const short = limitsLine(ready({ limits: { requestsPerMinute: 5, maxConcurrentRequests: 2 }, budgets: [budget] }))
    expect(short).toMatch(
      /^ {2}Its limits: 5 requests a minute, 2 requests at a time, budget day: 9 tokens \(Day\)\. This loop reaches them; .*429:\n\n {2}for i in \$\(seq 6\); do curl /,
    )
    const long = limitsLine(ready({ limits: { requestsPerMinute: 10_000, tokensPerMinute: 7 } }))
    expect(long).toBe('  Its limits: 10000 requests a minute, 7 tokens a minute.\n\n')
    expect(limitsLine(ready())).toBe('')
  })

  it('begins with the models that can be called, the others with their reasons, and missing objects', () => {
    expect(started()).toContain('running at http://127.0.0.1:1/v1 (models: a, b).\nEdit the manifests in m;')
    const many = started({ models: Array.from({ length: 12 }, (_, index) => `m${index}`), unusable: ['demo/llama (ServiceNotFound)'] })
    expect(many).toContain('m9 and 2 more).\nNot usable: ServedModel demo/llama (ServiceNotFound).\n')
    const empty = started({ models: [], keys: { total: 0, usable: 0 } })
    expect(empty).toContain('There is no ServedModel. Add one to m.\nThere is no ApiKey. Add one to m.\n')
  })

  it('ends with the way to start again, without the password of a Redis', () => {
    const env = { PORT: '0', MANIFESTS: "it's mine", REDIS_URL: 'redis://:hush@x', MODEL_URL: 'http://m:1', HOST: '::' }
    expect(stoppedLine(loadConfig(env), '.headgate')).toBe(
      `Headgate has stopped. The keys keep their values in .headgate/secrets. Start again with: PORT=0 HOST='::' MANIFESTS='it'\\''s mine' REDIS_URL=... MODEL_URL=http://m:1 make run\n`,
    )
  })
})
