import { describe, expect, it } from 'vitest'
import { loadConfig, loadStatusConfig } from './config.ts'

describe('the settings of make run', () => {
  it('take a model server with or without /v1 and a folder with or without a slash', () => {
    expect(loadConfig({})).toMatchObject({ port: 8080, host: '127.0.0.1', manifests: 'examples/standalone', pruneAll: false })
    const config = loadConfig({ PORT: '0', MANIFESTS: 'my/models/', MODEL_URL: 'http://127.0.0.1:9000/v1/' })
    expect(config).toMatchObject({ port: 0, manifests: 'my/models', modelURL: 'http://127.0.0.1:9000' })
    expect([loadStatusConfig({}).manifests, loadStatusConfig({ MANIFESTS: 'my/models/' }).manifests]).toEqual([undefined, 'my/models'])
  })

  it('name every wrong value at once, with its remedy, and never show the Redis URL', () => {
    const env = { PORT: '99999', HOST: 'a b', REDIS_URL: 'http://:hush@x', MODEL_URL: 'nowhere', ACCESS_LOG: 'some' }
    expect(() => loadConfig(env)).toThrow(
      /^PORT: "99999" is not a whole number from 0 to 65535; set it to a free port, such as 8080.*HOST: "a b" is not an IP address or a host name; .*REDIS_URL: (?!.*hush).*; MODEL_URL: "nowhere" is not of the form http\(s\).*; ACCESS_LOG: "some" is none of errors, sample, all; set it to/s,
    )
  })

  it.each(['http://u:hunter2@host:1', 'http://u:hun/ter2@host', 'u:hunter2@host'])('refuse the password in MODEL_URL=%s unseen', (url) => {
    const refusal = /^(?!.*(hun|ter2))MODEL_URL: the value contains @, and this URL must not hold a user name or a password; set it to http/
    expect(() => loadConfig({ MODEL_URL: url })).toThrow(refusal)
  })

  it.each(['http://host?key=1', 'http://host#x', 'ftp://host', 'http://'])(
    'refuse MODEL_URL=%s: a path alone may follow the host',
    (url) => {
      expect(() => loadConfig({ MODEL_URL: url })).toThrow('is not of the form http(s)://host[:port][/path]')
    },
  )

  it.each(['127.0.0.1', '0.0.0.0', '::', 'fe80::1', 'localhost', 'my-host.local'])('take HOST=%s', (host) => {
    expect(loadConfig({ HOST: host }).host).toBe(host)
  })
})
