import { describe, expect, it } from 'vitest'
import { checkBackendUrl, checkEndpoint, refuseAddress, rulesIn } from './backend-address.ts'

const CLUSTER = { allowLoopback: false, allowCluster: true }
const OUTSIDE = { allowLoopback: false }
const ONE_MACHINE = { allowLoopback: true }

describe('the address of a backend', () => {
  it.each([
    'http://10.0.0.5:8000',
    'http://192.168.1.1',
    'https://models.example.com/base',
    'http://llama.shop.svc:8000',
    'http://[fd00::1]:8000',
    'http://8.8.8.8/',
    'http://cafe:8000',
  ])('%s may be called', (text) => {
    expect(checkBackendUrl(text, CLUSTER)).toMatchObject({ ok: true })
  })

  it.each([
    ['http://127.0.0.1', 'loopback'],
    ['http://127.9.9.9:80', 'loopback'],
    ['http://[::1]:80', 'loopback'],
    ['http://[0:0:0:0:0:0:0:1]:80', 'loopback'],
    ['http://localhost:8000', 'localhost'],
    ['http://LocalHost.', 'localhost'],
    ['http://a.localhost', 'localhost'],
    ['http://0.0.0.0', 'not the address of a host'],
    ['http://[::]', 'not the address of a host'],
    ['http://169.254.169.254/latest', 'link-local'],
    ['http://[fe80::1]', 'link-local'],
    ['http://metadata.google.internal', 'metadata'],
    ['http://100.100.100.200', 'metadata'],
    ['http://[fd00:ec2::254]', 'metadata'],
    ['http://[fd00:ec2::23]', 'metadata'],
    ['http://[::ffff:0:127.0.0.1]', 'hides'],
    ['http://[2001:0:7f00:1::]', 'hides'],
    ['http://[::ffff:127.0.0.1]', 'hides an IPv4'],
    ['http://[::ffff:a00:1]', 'hides an IPv4'],
    ['http://[64:ff9b::169.254.169.254]', 'hides an IPv4'],
    ['http://[2002:7f00:1::]', 'hides an IPv4'],
    ['http://2130706433/', 'number'],
    ['http://167772161/', 'number'],
    ['http://0x0a000001/', 'number'],
    ['http://012.0.0.1/', 'number'],
    ['http://10.1/', 'number'],
    ['http://%31%30.0.0.1/', 'number'],
    ['http://user:secret@models.example.com', 'user info'],
    ['http://@models.example.com', 'user info'],
    ['ftp://models.example.com', 'scheme'],
    ['file:///etc/passwd', 'scheme'],
    ['http:10.0.0.5', 'must begin'],
    ['http://10.0.0.5?x=1', 'query'],
    ['http://10.0.0.5#x', 'query'],
    ['http://10.0.0.5\\@127.0.0.1', 'characters'],
    ['http://10.0.0.5\n', 'characters'],
    ['http://１２７.0.0.1', 'characters'],
    ['nonsense', 'not a URL'],
  ])('%s is refused: %s', (text, reason) => {
    expect(checkBackendUrl(text, CLUSTER)).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
  })

  it('loopback is fine on one machine, link-local and metadata are not even there', () => {
    expect(checkBackendUrl('http://127.0.0.1:8001', ONE_MACHINE)).toMatchObject({ ok: true })
    expect(checkBackendUrl('http://localhost:8001', ONE_MACHINE)).toMatchObject({ ok: true })
    expect(checkBackendUrl('http://[::1]:8001', ONE_MACHINE)).toMatchObject({ ok: true })
    expect(checkBackendUrl('http://169.254.169.254', ONE_MACHINE)).toMatchObject({ ok: false })
    expect(checkBackendUrl('http://[::ffff:127.0.0.1]', ONE_MACHINE)).toMatchObject({ ok: false })
  })

  it('endpoints of the cluster network may be called, but not those of the pod itself', () => {
    expect(checkEndpoint('10.1.2.3:8000', CLUSTER)).toMatchObject({ ok: true, url: new URL('http://10.1.2.3:8000') })
    expect(checkEndpoint('[fd00::1]:8000', CLUSTER)).toMatchObject({ ok: true })
    expect(checkEndpoint('llama.shop.svc:8000', CLUSTER)).toMatchObject({ ok: true })
    for (const text of [
      '127.0.0.1:80',
      '169.254.1.1:80',
      '[::1]:80',
      'localhost:80',
      '10.1.2.3',
      '10.1.2.3:0',
      '10.1.2.3:99999',
      '256.1.1.1:80',
      'a/b:80',
      'a@b:80',
    ]) {
      expect(checkEndpoint(text, CLUSTER), text).toMatchObject({ ok: false })
    }
  })

  it('an address with a zone and a text without an address are refused', () => {
    expect(refuseAddress('fe80::1%eth0', CLUSTER)).toBeDefined()
    expect(refuseAddress('example.com', CLUSTER)).toBeDefined()
    expect(refuseAddress('10.0.0.1', CLUSTER)).toBeUndefined()
  })

  it.each([
    'http://vllm.team-b.svc:8000',
    'http://VLLM.team-b.SVC.:8000',
    'http://vllm.team-b.svc.cluster.local',
    'https://headgate-operator.headgate.svc:9090',
    'http://vllm:8000',
    'http://10.0.0.5:8000',
    'http://172.16.0.1',
    'http://192.168.1.1',
    'http://100.64.3.4',
    'http://198.19.0.1',
    'http://[fd00::1]:8000',
  ])('%s is refused in a namespace that may not call the cluster', (text) => {
    expect(checkBackendUrl(text, OUTSIDE)).toEqual({ ok: false, reason: 'it is an address inside the cluster' })
  })

  it.each(['https://models.example.com', 'http://8.8.8.8', 'http://svc.example.com', 'http://172.32.0.1', 'http://[2606:4700::1]'])(
    '%s may be called from any namespace',
    (text) => expect(checkBackendUrl(text, OUTSIDE)).toMatchObject({ ok: true }),
  )

  it('an endpoint of a Service of the own namespace may be called from any namespace', () => {
    expect(checkEndpoint('10.1.2.3:8000', OUTSIDE)).toMatchObject({ ok: true })
    expect(checkEndpoint('llama.shop.svc:8000', OUTSIDE)).toMatchObject({ ok: true })
  })

  it('the administrator lists the namespaces', () => {
    const policy = { allowLoopback: false, clusterNamespaces: ['team-a'] }
    expect(['team-a', 'team-b'].map((namespace) => rulesIn(namespace, policy).allowCluster)).toEqual([true, false])
    expect(rulesIn('team-b', { allowLoopback: false, clusterNamespaces: ['*'] }).allowCluster).toBe(true)
    expect(rulesIn('team-b', { allowLoopback: false }).allowCluster).toBe(false)
  })
})
