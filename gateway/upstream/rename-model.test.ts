import { describe, expect, it } from 'vitest'
import type { JsonBody } from '../dialects/json-body.ts'
import { renamedAnswer, upstreamBody } from './rename-model.ts'

const bodyOf = (text: string): JsonBody => ({ bytes: Buffer.from(text), text, value: JSON.parse(text) })
const send = (text: string, upstream: string): string => upstreamBody(bodyOf(text), upstream).toString()

describe('the body that a backend gets', () => {
  it('is the very buffer of the client when the name is the same', () => {
    const body = bodyOf('{ "model" :\t"a", "x": 1.0 }')
    expect(upstreamBody(body, 'a')).toBe(body.bytes)
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

describe('the answer that a client gets', () => {
  const rename = (text: string): string => renamedAnswer(Buffer.from(text), 'asked').toString()

  it('differs in the name alone', () => {
    expect(rename('{"id":1, "model" : "up", "choices":[{"text":"\\"model\\": \\"up\\""}]}')).toBe(
      '{"id":1, "model" : "asked", "choices":[{"text":"\\"model\\": \\"up\\""}]}',
    )
  })

  it('differs in the name alone where characters of several bytes stand before it', () => {
    expect(rename('{"é":"漢😀","model":"up"}')).toBe('{"é":"漢😀","model":"asked"}')
  })

  it('has the name of the model even where the server broke UTF-8', () => {
    const broken = Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xe2, 0x82, 0x41, 0xff]), Buffer.from('","model":"up"}')])
    expect(JSON.parse(renamedAnswer(broken, 'asked').toString())).toMatchObject({ model: 'asked' })
  })

  it('shows the name inside the message of message_start', () => {
    expect(rename('{"type":"message_start","message":{"model":"up","id":"m"}}')).toBe(
      '{"type":"message_start","message":{"model":"asked","id":"m"}}',
    )
  })

  it('is written anew where the place of the name cannot be proven', () => {
    expect(JSON.parse(rename('{"model":"up","x":{"model":"y"}}'))).toEqual({ model: 'asked', x: { model: 'y' } })
    expect(JSON.parse(rename('{"message":{"model":"up","x":{"model":"y"}}}'))).toEqual({ message: { model: 'asked', x: { model: 'y' } } })
  })

  it.each(['{"id":1}', '{"model":"asked"}', '[{"model":"up"}]', 'not json "model"', '{"model":7}'])('%s stays the same buffer', (text) => {
    const json = Buffer.from(text)
    expect(renamedAnswer(json, 'asked')).toBe(json)
  })
})
