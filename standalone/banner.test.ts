import { describe, expect, it } from 'vitest'
import type { ApiKey } from '../operator/api/apikey.ts'
import type { ServedModel } from '../operator/api/served-model.ts'
import { curlLine, isReady, modelNames, startBanner } from './banner.ts'

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
