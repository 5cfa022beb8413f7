import { describe, expect, it } from 'vitest'
import { loadConfig, loadStatusConfig } from './config.ts'

const reasonFor = (env: Record<string, string>): string => {
  try {
    loadConfig(env)
    return 'accepted'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

describe('the settings of make run', () => {
  it('have a default each', () => {
    expect(loadConfig({})).toEqual({
      port: 8080,
      host: '127.0.0.1',
      manifests: 'examples/standalone',
      pruneAll: false,
      redisURL: undefined,
      redisKeyPrefix: 'hg',
      redisTakeOver: false,
      modelURL: undefined,
      accessLog: 'all',
      logLevel: 'info',
      logFormat: 'auto',
    })
  })

  it('take a model server with or without /v1 and a folder with or without a slash', () => {
    const config = loadConfig({ PORT: '0', MANIFESTS: 'my/models/', MODEL_URL: 'http://127.0.0.1:9000/v1/' })
    expect(config).toMatchObject({ port: 0, manifests: 'my/models', modelURL: 'http://127.0.0.1:9000' })
    expect([loadStatusConfig({}), loadStatusConfig({ MANIFESTS: 'my/models/' })]).toEqual([
      { manifests: undefined },
      { manifests: 'my/models' },
    ])
  })

  it.each(['abc', '99999', '65536', '1e4', '0x46a1', '-1', '80.5', ' 80', '+80'])('refuse PORT=%s with a message of their own', (port) => {
    expect(reasonFor({ PORT: port })).toBe(
      `PORT: ${JSON.stringify(port)} is not a whole number from 0 to 65535; set it to a free port, such as 8080`,
    )
  })

  it('name every wrong value at once, with its remedy, and never show the Redis URL', () => {
    const reason = reasonFor({ PORT: '99999', HOST: 'a b', REDIS_URL: 'http://:hush@x', MODEL_URL: 'nowhere', ACCESS_LOG: 'some' })
    expect(reason).toMatch(
      /PORT: .*HOST: "a b" is not an IP address or a host name; .*REDIS_URL: .*; MODEL_URL: "nowhere" is not of the form http\(s\).*; ACCESS_LOG: "some" is none of errors, sample, all; set it to/,
    )
    expect(reason).not.toContain('hush')
  })

  it.each(['http://u:hunter2@host:1', 'http://u:hun/ter2@host', 'u:hunter2@host'])(
    'refuse a password in MODEL_URL without a word of it',
    (url) => {
      const reason = reasonFor({ MODEL_URL: url })
      expect(reason).toMatch(/^MODEL_URL: the value contains @, and this URL must not hold a user name or a password; set it to http/)
      expect(reason).not.toMatch(/hun|ter2/)
    },
  )

  it.each(['http://host?key=1', 'http://host#x', 'ftp://host', 'http://'])(
    'refuse MODEL_URL=%s: a path alone may follow the host',
    (url) => {
      expect(reasonFor({ MODEL_URL: url })).toContain('is not of the form http(s)://host[:port][/path]')
    },
  )

  it.each(['127.0.0.1', '0.0.0.0', '::', '::1', 'fe80::1', 'localhost', 'my-host.local'])('take HOST=%s', (host) => {
    expect(loadConfig({ HOST: host }).host).toBe(host)
  })
})
