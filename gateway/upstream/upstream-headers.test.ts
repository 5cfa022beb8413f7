import { describe, expect, it } from 'vitest'
import { forwardedHeaders, returnedHeaders, upstreamHeaders } from './upstream-headers.ts'

const SOURCE = { sent: {}, forwarded: forwardedHeaders(), isNative: false, requestId: 'req_1', credential: undefined }

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
  it('are only those of the gateway and the allowed ones', () => {
    const allowed = { accept: 'x/y', 'openai-beta': 'b', 'x-codex-a': 'c', 'x-session-id': 's' }
    const others = { host: 'h', cookie: 'c', authorization: 'Bearer sk-1', te: 'trailers', 'x-odd': '1', 'anthropic-beta': 'z' }
    const own = ['accept-encoding', 'identity', 'content-type', 'application/json', 'x-request-id', 'req_1', 'x-headgate-hops', '1']
    expect(upstreamHeaders({ ...SOURCE, sent: { ...others, ...allowed } })).toEqual([...own, ...Object.entries(allowed).flat()])
  })

  it.each(['application/json; charset=utf-7', 'application/json; charset=unicode_escape', 'text/html;json', 'text/plain'])(
    'name application/json without a charset for a body that was read as JSON in UTF-8, whatever header the client sent: %s',
    (sent) => {
      const headers = upstreamHeaders({ ...SOURCE, sent: { 'content-type': sent } })
      expect(headers.slice(2, 4)).toEqual(['content-type', 'application/json'])
      expect(headers.join(' ')).not.toMatch(/charset|text/)
    },
  )

  it('can be extended by the configuration, but not by headers that must never be forwarded', () => {
    const forwarded = forwardedHeaders([' X-Tenant ', ''])
    expect(upstreamHeaders({ ...SOURCE, forwarded, sent: { 'x-tenant': 't' } })).toContain('x-tenant')
    const never = [
      ...['Authorization', 'x-api-key', 'cookie', 'host', 'connection', 'content-length', 'transfer-encoding', 'x-forwarded-for'],
      ...['x-stainless-os', 'x-request-id', 'accept-encoding', 'proxy-authorization', 'bad name'],
    ]
    for (const name of never) {
      expect(() => forwardedHeaders([name]), name).toThrow(/FORWARD_HEADERS/)
    }
  })
})

it('of the headers of an answer three reach the client', () => {
  const shown = { 'content-type': 'a/b', 'cache-control': 'no-store', 'openai-processing-ms': '3' }
  const answer = { ...shown, 'set-cookie': ['a'], server: 'x', 'x-ratelimit-limit-requests': '9' }
  expect(returnedHeaders(answer)).toEqual(Object.entries(shown).flat())
})
