import { describe, expect, it } from 'vitest'
import { ownHeaders } from './model-table.ts'
import { forwardedHeaders, upstreamHeaders } from './upstream-headers.ts'

const SOURCE = {
  own: ownHeaders({}),
  sent: {},
  forwarded: forwardedHeaders(),
  isAnthropic: false,
  requestId: 'req_1',
  credential: undefined,
}

it.each([
  [undefined, '1'],
  ['2', '3'],
  ['not a count', '1'],
  ['9999', '1'],
])('a request with a hop count of %s is forwarded with %s', (sent, counted) => {
  const flat = upstreamHeaders({ ...SOURCE, sent: sent === undefined ? {} : { 'x-headgate-hops': sent } })
  expect(flat[flat.indexOf('x-headgate-hops') + 1]).toBe(counted)
  expect(flat.filter((name) => name === 'x-headgate-hops')).toHaveLength(1)
})

describe('request headers', () => {
  it.each(['application/json; charset=utf-7', 'application/json; charset=unicode_escape', 'text/html;json', 'text/plain'])(
    'name application/json without a charset for a body that was read as JSON in UTF-8, whatever header the client sent: %s',
    (sent) => {
      const headers = upstreamHeaders({ ...SOURCE, sent: { 'content-type': sent } })
      expect(headers.slice(2, 4)).toEqual(['content-type', 'application/json'])
      expect(headers.join(' ')).not.toMatch(/charset|text/)
    },
  )
})

describe('the headers of a backend', () => {
  const headersWith = (record: Parameters<typeof ownHeaders>[0], sent: Record<string, string> = {}) => {
    const flat = upstreamHeaders({
      ...SOURCE,
      own: ownHeaders(record),
      sent,
      forwarded: new Set(['x-a', 'x-b', 'api-key']),
      credential: 'secret',
    })
    return flat.slice(flat.indexOf('x-headgate-hops') + 2)
  }

  it('are the credential in its header, with its scheme, and fixed values, which a client cannot replace', () => {
    const record = { credentialHeader: 'Api-Key', credentialScheme: '', headers: [{ name: 'X-A', value: 'fixed' }] }
    expect(headersWith(record, { 'x-a': 'client', 'x-b': 'client', 'api-key': 'client' })).toEqual([
      'x-a',
      'fixed',
      'api-key',
      'secret',
      'x-b',
      'client',
    ])
    expect(headersWith({ credentialHeader: 'authorization', credentialScheme: 'Token' })).toEqual(['authorization', 'Token secret'])
  })

  it('of a forged record change neither the connection nor the body nor the credential', () => {
    const evil = ['host', 'content-length', 'transfer-encoding', 'connection', 'authorization', 'x-headgate-hops', 'x-request-id', 'cookie']
    expect(headersWith({ headers: evil.map((name) => ({ name, value: 'x' })) })).toEqual(['authorization', 'Bearer secret'])
    for (const name of ['host', 'transfer-encoding', 'content-length', 'x-headgate-hops', 'proxy-authorization'])
      expect(headersWith({ credentialHeader: name, credentialScheme: '' })).toEqual(['authorization', 'secret'])
  })
})
