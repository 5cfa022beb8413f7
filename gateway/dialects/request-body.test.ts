import { COSTS } from './request-shape.ts'
import { describe, expect, it } from 'vitest'
import type { JsonBody } from './json-body.ts'
import { bytesFor, requestBody } from './request-body.ts'

const bodyOf = (text: string): JsonBody => ({ bytes: Buffer.from(text), text, value: JSON.parse(text) })
const sent = (body: JsonBody, upstreamModel: string): Buffer =>
  bytesFor(requestBody(body, String(body.value.model)), upstreamModel, { asksUsage: false })
const send = (text: string, upstream: string): string => sent(bodyOf(text), upstream).toString()

describe('the body that a backend gets', () => {
  it('is the original buffer if the name is the same', () => {
    const body = bodyOf('{ "model" :\t"a", "x": 1.0 }')
    expect(sent(body, 'a')).toBe(body.bytes)
  })

  it('differs only in the name, also between characters of several bytes', () => {
    expect(send('{"é": "漢😀", "model":"ä/😀", "x": "ü"}', 'org/ö')).toBe('{"é": "漢😀", "model":"org/ö", "x": "ü"}')
  })

  it.each([
    ...COSTS.map((field): [string, string] => [`L3 two fields ${field}`, `{"model":"a","${field}":1,"${field}":100000}`]),
    ['two stream keys', '{"model":"a","stream":false,"x":{"stream":true}}'],
    ['an escaped key of such a field', '{"model":"a","n":1,"\\u006e":9}'],
    ['two model keys', '{"model":"b","model":"a"}'],
    ['an escaped model key before', '{"mod\\u0065l":"b","model":"a"}'],
    ['an escaped model key after', '{"model":"b","\\u006dodel":"a"}'],
    ['a model key further inside', '{"model":"a","x":{"model":"b"}}'],
    ['a name in an unusual spelling', '{"model":"\\u0061"}'],
    ['a name with an escaped slash', '{"model":"a\\/b"}'],
    ['the token as a value', '{"model":"a","x":"model"}'],
    ['the token at the end of a string', '{"model":"a","x":"a \\"model"}'],
  ])('is serialised again with %s', (_, text) => {
    const parsed = JSON.parse(text)
    expect(send(text, parsed.model)).toBe(JSON.stringify(parsed))
    expect(JSON.parse(send(text, 'c'))).toEqual({ ...parsed, model: 'c' })
  })

  it('keeps a key named __proto__ when it is serialised again', () => {
    expect(send('{"model":"a","__proto__":{"model":"b"}}', 'c')).toBe('{"model":"c","__proto__":{"model":"b"}}')
  })
})

describe('S2 the body that asks a server for the usage of a stream', () => {
  const asking = (text: string, upstreamModel = 'a'): string =>
    bytesFor(requestBody(bodyOf(text), 'a', true), upstreamModel, { asksUsage: true }).toString()

  it.each([
    ['without options', '{"model":"a", "x": 1.0}', '{"model":"a","stream_options":{"include_usage":true}, "x": 1.0}'],
    ['without any field behind the model', '{"é":"漢","model":"a"}', '{"é":"漢","model":"a","stream_options":{"include_usage":true}}'],
    [
      'with options that disable usage',
      '{"stream_options": {"include_usage": false, "x":"}"}, "model":"a"}',
      '{"stream_options": {"include_usage":true,"x":"}"}, "model":"a"}',
    ],
    [
      'with empty options',
      '{"model":"a","stream_options":{ } , "x":1.0}',
      '{"model":"a","stream_options":{"include_usage":true} , "x":1.0}',
    ],
    ['with null for options', '{"model":"a","stream_options": null}', '{"model":"a","stream_options": {"include_usage":true}}'],
  ])('%s differs in them alone', (_, text, expected) => {
    expect(asking(text)).toBe(expected)
    expect(asking(text, 'org/b')).toBe(expected.replace('"a"', '"org/b"'))
  })

  it.each([
    ['two of them', '{"model":"a","stream_options":{"include_usage":false},"stream_options":{"include_usage":false}}'],
    ['an escaped key', '{"model":"a","str\\u0065am_options":{"include_usage":false}}'],
    ['another field of that name further inside', '{"model":"a","stream_options":{"include_usage":false},"x":{"stream_options":1}}'],
    ['a model that no parser need find', '{"model":"b","model":"a","stream_options":{"x":"é"}}'],
    ['such a model and no options', '{"model":"b","model":"a","x":"é"}'],
  ])('is serialised again with %s', (_, text) => {
    const { model: _model, stream_options: options, ...others } = JSON.parse(text) as Record<string, unknown>
    const expected = { model: 'org/b', stream_options: { ...(options as object), include_usage: true }, ...others }
    expect(asking(text, 'org/b')).toBe(JSON.stringify(expected))
  })

  it.each(['7', '"yes"', '[1]', 'true'])('leaves %s, which is not a set of options, for the server to refuse', (options) => {
    const text = `{"model":"a","stream_options":${options}}`
    expect(asking(text)).toBe(text)
  })

  it('is the very buffer of the client for a server that is not asked', () => {
    const body = bodyOf('{"model":"a","stream_options":{}}')
    expect(bytesFor(requestBody(body, 'a', true), 'a', { asksUsage: false })).toBe(body.bytes)
  })
})
