import { describe, expect, it } from 'vitest'
import type { JsonBody } from './json-body.ts'
import { bytesFor, requestBody } from './request-body.ts'

const bodyOf = (text: string): JsonBody => ({ bytes: Buffer.from(text), text, value: JSON.parse(text) })
const sent = (body: JsonBody, upstream: string): Buffer => bytesFor(requestBody(body, String(body.value.model)), upstream)
const send = (text: string, upstream: string): string => sent(bodyOf(text), upstream).toString()

describe('the body that a backend gets', () => {
  it('is the very buffer of the client when the name is the same', () => {
    const body = bodyOf('{ "model" :\t"a", "x": 1.0 }')
    expect(sent(body, 'a')).toBe(body.bytes)
  })

  it('differs in the name alone when that is another one', () => {
    expect(send('{ "x": 1.0, "model" : "a" , "é": "\\n\\u00e9" }', 'org/b')).toBe('{ "x": 1.0, "model" : "org/b" , "é": "\\n\\u00e9" }')
  })

  it('differs in the name alone where characters of several bytes stand before and after it', () => {
    expect(send('{"é": "漢😀", "model":"ä/😀", "x": "ü"}', 'org/ö')).toBe('{"é": "漢😀", "model":"org/ö", "x": "ü"}')
  })

  it.each([
    ['two of a field that decides what the call costs', '{"model":"a","max_tokens":1,"max_tokens":100000}'],
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
  ])('is written anew with %s', (_, text) => {
    const parsed = JSON.parse(text)
    expect(send(text, parsed.model)).toBe(JSON.stringify(parsed))
    expect(JSON.parse(send(text, 'c'))).toEqual({ ...parsed, model: 'c' })
  })

  it('keeps a key named __proto__ when it is written anew', () => {
    expect(send('{"model":"a","__proto__":{"model":"b"}}', 'c')).toBe('{"model":"c","__proto__":{"model":"b"}}')
  })
})
