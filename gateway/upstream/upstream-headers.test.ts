import { describe, expect, it } from 'vitest'
import { forwardedHeaders, upstreamHeaders } from './upstream-headers.ts'

const SOURCE = { sent: {}, forwarded: forwardedHeaders(), isAnthropic: false, requestId: 'req_1', credential: undefined }

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
