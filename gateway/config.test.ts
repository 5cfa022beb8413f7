import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { loadConfig } from './config.ts'
import { Misconfigured } from '#platform/lifecycle.ts'

const REDIS_URL = 'redis://redis:6379'

function errorsIn(env: NodeJS.ProcessEnv): readonly string[] {
  try {
    loadConfig(env)
  } catch (error) {
    if (error instanceof Misconfigured) return error.lines
  }
  return []
}

describe('the settings of a gateway', () => {
  test('need only the place of Redis', () => {
    expect(loadConfig({ REDIS_URL })).toMatchObject({
      ...{ port: 8080, metricsPort: 9090, redisKeyPrefix: 'hg', podName: hostname(), coldStart: 'Keyring', accessLog: 'sample' },
      ...{ maxBodyBytes: 32 * 2 ** 20, maxTranslatedAnswerBytes: 32 * 2 ** 20, apiKeyHeader: true, tokenHold: 'Declared', maxReplicas: 20 },
      redis: { url: REDIS_URL, username: undefined, password: undefined, caFile: undefined },
    })
  })

  test('become what the program needs: flags, numbers, the connection to Redis, and names of headers', () => {
    const redis = { REDIS_URL: 'rediss://u:p@redis/2', REDIS_USERNAME: 'gateway', REDIS_PASSWORD: 'x', REDIS_CA_FILE: '/ca' }
    const env = { ...redis, API_KEY_HEADER: 'false', DRAIN_SECONDS: '0', UV_THREADPOOL_SIZE: '16', FORWARD_HEADERS: 'X-Tenant, x-trace' }
    const { forwardHeaders, ...rest } = loadConfig(env)
    expect(rest).toMatchObject({
      ...{ apiKeyHeader: false, drainSeconds: 0, uvThreadpoolSize: 16 },
      redis: { url: 'rediss://u:p@redis/2', username: 'gateway', password: 'x', caFile: '/ca' },
    })
    expect([...forwardHeaders]).toEqual(expect.arrayContaining(['traceparent', 'x-tenant', 'x-trace']))
  })

  test.each([
    ['', []],
    [' https://chat.example.com , http://localhost:3000,', ['https://chat.example.com', 'http://localhost:3000']],
    ['chrome-extension://abcdefghijklmnop,tauri://localhost', ['chrome-extension://abcdefghijklmnop', 'tauri://localhost']],
    ['*', ['*']],
  ])('CORS_ORIGINS=%j admits %j', (text, origins) => {
    expect([...loadConfig({ REDIS_URL, CORS_ORIGINS: text }).corsOrigins]).toEqual(origins)
  })

  test.each([
    ['PORT', '8080a', /^PORT: "8080a" is not a whole number from 0 to 65535; set it to a free port/],
    ['REDIS_URL', 'http://redis', /^REDIS_URL: the value is not the URL of a Redis; set it to redis:\/\/host:port/],
    ['REDIS_URL', 'redis://user:100%@host', /^REDIS_URL: the value .* a % in a password is written %25/],
    ['REDIS_KEY_PREFIX', 'a{b}', /^REDIS_KEY_PREFIX: "a\{b\}" has characters other than/],
    ['POD_NAME', 'a/b', /^POD_NAME: "a\/b" is not a pod name/],
    ['COLD_START', 'keyring', /^COLD_START: "keyring" is none of Keyring, RequireRedis/],
    ['ACCESS_LOG', 'some', /^ACCESS_LOG: "some" is none of errors, sample, all/],
    ['LOG_LEVEL', 'loud', /^LOG_LEVEL: "loud" is none of/],
    ['MAX_BODY_BYTES', '268435457', /^MAX_BODY_BYTES: "268435457" is not a whole number from 1024 to 268435456/],
    ['DEREGISTRATION_SECONDS', '301', /^DEREGISTRATION_SECONDS: "301" is not a whole number from 0 to 300/],
    ['API_KEY_HEADER', 'on', /^API_KEY_HEADER: "on" is neither true nor false; set it to true or false/],
    [
      'FORWARD_HEADERS',
      'x-a,cookie',
      /^FORWARD_HEADERS: "x-a,cookie" contains "cookie", which may not be forwarded, since it holds a credential; set it to header names/,
    ],
    [
      'CORS_ORIGINS',
      'https://chat.example.com/',
      /^CORS_ORIGINS: "https:\/\/chat.example.com\/" has an entry that is not an origin as browsers send it, .*; set it to/,
    ],
    ['CORS_ORIGINS', 'https://a.example,*', /^CORS_ORIGINS: .* has \* beside other origins/],
    ['CORS_ORIGINS', 'https://Chat.example.com', /^CORS_ORIGINS: .* not an origin/],
    ['CORS_ORIGINS', 'https://chat.example.com:443', /^CORS_ORIGINS: .* not an origin/],
    ['CORS_ORIGINS', 'chat.example.com', /^CORS_ORIGINS: .* not an origin/],
    ['CORS_ORIGINS', 'null', /^CORS_ORIGINS: .* not an origin/],
    ['CORS_ORIGINS', 'https://*.example.com', /^CORS_ORIGINS: .* not an origin/],
    ['FORWARD_HEADERS', 'x a', /^FORWARD_HEADERS: "x a" contains "x a", which may not be forwarded, since it is not a header name/],
    ['TOKEN_HOLD', 'all', /^TOKEN_HOLD: "all" is none of Declared, Expected/],
    ['MAX_REPLICAS', '0', /^MAX_REPLICAS: "0" is not a whole number from 1 to 10000/],
  ])('refuse %s=%s with the reason and the remedy', (name, value, line) => {
    expect(errorsIn({ REDIS_URL, [name]: value })).toEqual([expect.stringMatching(line)])
  })

  test('that are missing are named', () => {
    expect(errorsIn({})).toEqual([
      'REDIS_URL: is not set; set it to redis://host:port or rediss://host:port; a % in a password is written %25',
    ])
  })
})
