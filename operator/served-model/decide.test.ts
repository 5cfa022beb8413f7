import { describe, expect, test } from 'vitest'
import { decodeModelRecord, encodeModelRecord } from '../../gateway/shared/model-record.ts'
import { servedModel } from '../../test/support/objects.ts'
import { coldStartRecord, decide, upstreamFile } from './decide.ts'
import type { ObservedBackend, ObservedModel } from './observed.ts'

type Spec = NonNullable<Parameters<typeof servedModel>[1]>
const BORN = { uid: 'uid-1', creationTimestamp: '2026-01-01T00:00:05Z' }
const up = (name = 'one', change: Partial<ObservedBackend> = {}): ObservedBackend => ({
  name,
  service: { found: true, ready: ['10.0.0.1:8080'], total: 1 },
  token: { state: 'NotUsed' },
  reachable: undefined,
  ...change,
})
const url = (address: string, name = 'one') => ({ name, url: address })
const atUrl = (name = 'one', change: Partial<ObservedBackend> = {}): ObservedBackend => up(name, { service: undefined, ...change })

function observe(spec: Spec, backends: ObservedBackend[], change: Partial<ObservedModel> = {}): ObservedModel {
  const around = { lostNames: [], selectedNamespaces: [], allowLoopback: false }
  return { model: servedModel('llama', spec, BORN), backends, ...around, ...change }
}

describe('decide for a ServedModel', () => {
  test('everything that the manifest says reaches the record, in the form that gateways read', () => {
    const spec: Spec = {
      servedName: 'llama-3.1-8b',
      aliases: ['small', 'llama'],
      timeouts: { firstByteSeconds: 10, idleSeconds: 20, totalSeconds: 30 },
      backends: [
        { name: 'one', service: { name: 'llama', port: 8000 }, weight: 7, messages: 'Native', upstreamModel: 'meta/llama' },
        { name: 'two', url: 'https://models.example/base', authSecretRef: { name: 'token' } },
      ],
    }
    const { record, accepted } = decide(observe(spec, [up('one'), atUrl('two', { token: { state: 'Found', sum: 'ab12' } })]))
    expect(accepted.reason).toBe('Accepted')
    expect(record).toEqual({
      v: 1,
      rev: 0,
      uid: 'uid-1',
      ns: 'shop',
      name: 'llama',
      created: Date.parse(BORN.creationTimestamp),
      served: 'llama-3.1-8b',
      aliases: ['llama', 'small'],
      allow: ['shop'],
      to: { first: 10, idle: 20, total: 30 },
      backends: [
        {
          name: 'one',
          eps: ['10.0.0.1:8080'],
          svc: 'llama.shop.svc:8000',
          url: null,
          model: 'meta/llama',
          w: 7,
          messages: 'Native',
          auth: null,
          authSum: null,
        },
        {
          name: 'two',
          eps: [],
          svc: null,
          url: 'https://models.example/base',
          model: 'llama-3.1-8b',
          w: 100,
          messages: 'Translate',
          auth: 'upstream.uid-1.two',
          authSum: 'ab12',
        },
      ],
    })
    expect(record && decodeModelRecord(encodeModelRecord(record))).toEqual(record)
    expect(upstreamFile('uid-1', 'two')).toBe('upstream.uid-1.two')
  })

  test.each<[string, Spec['allowedNamespaces'], string[], '*' | string[]]>([
    ['Same', { from: 'Same' }, [], ['shop']],
    ['All', { from: 'All' }, [], '*'],
    ['Selector', { from: 'Selector', selector: {} }, ['z', 'a', 'shop'], ['a', 'shop', 'z']],
    ['Selector that matches none', { from: 'Selector', selector: {} }, [], ['shop']],
  ])('allowedNamespaces %s', (_what, allowedNamespaces, selectedNamespaces, allow) => {
    const { record } = decide(observe({ allowedNamespaces }, [up()], { selectedNamespaces }))
    expect(record?.allow).toEqual(allow)
  })

  test.each<[string, ObservedBackend, string, string]>([
    [
      'a missing Service',
      up('one', { service: { found: false, problem: 'Service llama has no port 81' } }),
      'ServiceNotFound',
      'backends[one].service: Service llama has no port 81',
    ],
    [
      'a missing Secret',
      up('one', { token: { state: 'NotFound', problem: 'Secret token lacks the label' } }),
      'SecretNotFound',
      'backends[one].authSecretRef: Secret token lacks',
    ],
  ])('%s takes the model from the gateways and is named, with its place in the manifest', (_what, backend, reason, message) => {
    const { record, accepted } = decide(observe({}, [backend]))
    expect(record).toBeUndefined()
    expect(accepted).toMatchObject({ type: 'Accepted', reason, message: expect.stringContaining(message) })
  })

  test.each([
    'http://127.0.0.1:8000',
    'http://localhost',
    'http://169.254.169.254',
    'http://[::1]:80',
    'http://user@models.example',
    'ftp://models.example',
  ])('the address %s is refused', (address) => {
    const { record, accepted } = decide(observe({ backends: [url(address)] }, [atUrl()]))
    expect(record).toBeUndefined()
    expect(accepted).toMatchObject({ reason: 'AddressRefused', message: expect.stringContaining('backends[one].url is refused') })
  })

  test('loopback is fine in standalone alone', () => {
    const backends = [url('http://127.0.0.1:8000')]
    expect(decide(observe({ backends }, [atUrl()], { allowLoopback: true })).record?.backends[0]?.url).toBe('http://127.0.0.1:8000')
  })

  test('an endpoint with a refused address is never called, however it came into a slice', () => {
    const ready = ['10.0.0.1:8080', '127.0.0.1:8080', '169.254.169.254:80']
    const { record } = decide(observe({}, [up('one', { service: { found: true, ready, total: 3 } })]))
    expect(record?.backends[0]?.eps).toEqual(['10.0.0.1:8080'])
  })

  test('one wrong backend is left out and named; the others serve', () => {
    const backends = [url('http://localhost', 'bad'), url('http://models.example', 'good')]
    const { record, accepted } = decide(observe({ backends }, [atUrl('bad'), atUrl('good')]))
    expect(record?.backends.map(({ name }) => name)).toEqual(['good'])
    expect(accepted).toMatchObject({ reason: 'AddressRefused', message: expect.stringContaining('[bad]') })
  })

  test('a lost name is told with its owner; the record stays, since its other names work', () => {
    const { record, accepted } = decide(observe({}, [up()], { lostNames: [{ name: 'llama', winner: 'other/old' }] }))
    expect(record).toBeDefined()
    expect(accepted).toMatchObject({ reason: 'NameConflict', message: expect.stringContaining('"llama" belongs to ServedModel other/old') })
  })

  test('the record of a cold start has Services instead of endpoints: pods that come and go do not change it', () => {
    const some = decide(observe({}, [up()])).record
    const none = decide(observe({}, [up('one', { service: { found: true, ready: [], total: 0 } })])).record
    if (!some || !none) throw new Error('no record')
    expect(coldStartRecord(some)).toEqual(coldStartRecord(none))
    expect(coldStartRecord(some).backends[0]).toMatchObject({ eps: [], svc: 'llama.shop.svc:8000' })
  })
})
