import { describe, expect, test } from 'vitest'
import { allowedOrigins, missingHostEntry } from './backend-credential.ts'

const missing = (annotation: string | undefined, url: string, allowLoopback = false): string | undefined =>
  missingHostEntry(url, allowedOrigins(annotation), allowLoopback)

describe('hosts of a backend credential', () => {
  test.each<[annotation: string, url: string]>([
    ['api.openai.com', 'https://api.openai.com'],
    ['api.openai.com', 'https://API.openai.com:443/v1/base'],
    [' a.example ,, api.openai.com , b.example ', 'https://api.openai.com'],
    ['API.OpenAI.com', 'https://api.openai.com'],
    ['models.example:8443', 'https://models.example:8443/base'],
    ['https://models.example:8443', 'https://models.example:8443'],
    ['https://models.example/', 'https://models.example'],
    ['http://models.example', 'http://models.example/base'],
    ['10.1.2.3:8080', 'https://10.1.2.3:8080'],
    ['[fd00::1]:8080', 'https://[fd00::1]:8080'],
    ['proxy.infra.svc:8080', 'http://proxy.infra.svc:8080'],
    ['proxy.infra.svc', 'http://proxy.infra.svc'],
    ['proxy.infra.svc.cluster.local:8080', 'http://proxy.infra.svc.cluster.local:8080'],
    ['proxy.infra.svc:8080', 'https://proxy.infra.svc:8080'],
  ])('%s allows %s', (annotation, url) => {
    expect(missing(annotation, url)).toBeUndefined()
  })

  test.each<[annotation: string | undefined, url: string, entry: string]>([
    [undefined, 'https://api.openai.com', 'api.openai.com'],
    ['', 'https://api.openai.com/v1', 'api.openai.com'],
    ['api.openai.com', 'https://evil.example', 'evil.example'],
    ['api.openai.com', 'https://evil.api.openai.com', 'evil.api.openai.com'],
    ['api.openai.com', 'https://api.openai.com.evil.example', 'api.openai.com.evil.example'],
    ['api.openai.com', 'https://api.openai.com:8443', 'api.openai.com:8443'],
    ['api.openai.com', 'http://api.openai.com', 'http://api.openai.com'],
    ['models.example:8080', 'http://models.example:8080', 'http://models.example:8080'],
    ['https://models.example', 'http://models.example', 'http://models.example'],
    ['http://models.example', 'https://models.example', 'models.example'],
    ['*.openai.com', 'https://api.openai.com', 'api.openai.com'],
    ['https://user@api.openai.com', 'https://api.openai.com', 'api.openai.com'],
    ['https://api.openai.com/v1', 'https://api.openai.com', 'api.openai.com'],
    ['proxy.infra', 'http://proxy.infra.svc', 'proxy.infra.svc'],
    ['x.svc.evil.example:80', 'http://x.svc.evil.example', 'http://x.svc.evil.example'],
  ])('%s does not allow %s, and %s is the entry to add', (annotation, url, entry) => {
    expect(missing(annotation, url)).toBe(entry)
  })

  test('the entry that a message suggests allows the backend', () => {
    for (const url of ['https://a.example:8443/x', 'http://a.example', 'http://p.infra.svc:81', 'https://10.0.0.1']) {
      expect(missing(missing(undefined, url), url)).toBeUndefined()
    }
  })

  test.each(['http://127.0.0.1:8000', 'http://localhost:8000', 'http://[::1]:8000'])('%s needs no entry in standalone', (url) => {
    expect(missing(undefined, url, true)).toBeUndefined()
    expect(missing(undefined, url, false)).toBe(url)
  })

  test('standalone allows no other host without an entry', () => {
    expect(missing(undefined, 'https://api.openai.com', true)).toBe('api.openai.com')
    expect(missing(undefined, 'http://localhost.evil.example', true)).toBe('http://localhost.evil.example')
  })

  test('entries beyond the 64th are ignored', () => {
    expect(allowedOrigins(Array.from({ length: 1_000 }, (_, index) => `h${index}.example`).join()).size).toBe(64)
  })
})
