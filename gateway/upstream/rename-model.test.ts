import { describe, expect, it } from 'vitest'
import { renamedAnswer } from './rename-model.ts'

describe('the answer that a client gets', () => {
  const rename = (text: string): string => renamedAnswer(Buffer.from(text), 'asked').toString()

  it('differs in the name alone', () => {
    expect(rename('{"id":1, "model" : "up", "choices":[{"text":"\\"model\\": \\"up\\""}]}')).toBe(
      '{"id":1, "model" : "asked", "choices":[{"text":"\\"model\\": \\"up\\""}]}',
    )
  })

  it('differs only in the name, also after characters of several bytes', () => {
    expect(rename('{"é":"漢😀","model":"up"}')).toBe('{"é":"漢😀","model":"asked"}')
  })

  it('has the name of the model even after invalid UTF-8', () => {
    const broken = Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xe2, 0x82, 0x41, 0xff]), Buffer.from('","model":"up"}')])
    expect(JSON.parse(renamedAnswer(broken, 'asked').toString())).toMatchObject({ model: 'asked' })
  })

  it('shows the name inside the message of message_start', () => {
    expect(rename('{"type":"message_start","message":{"model":"up","id":"m"}}')).toBe(
      '{"type":"message_start","message":{"model":"asked","id":"m"}}',
    )
  })

  it('is serialised again if the place of the name cannot be proven', () => {
    expect(JSON.parse(rename('{"model":"up","x":{"model":"y"}}'))).toEqual({ model: 'asked', x: { model: 'y' } })
    expect(JSON.parse(rename('{"message":{"model":"up","x":{"model":"y"}}}'))).toEqual({ message: { model: 'asked', x: { model: 'y' } } })
  })

  it.each(['{"id":1}', '{"model":"asked"}', '[{"model":"up"}]', 'not json "model"', '{"model":7}'])('%s stays the same buffer', (text) => {
    const json = Buffer.from(text)
    expect(renamedAnswer(json, 'asked')).toBe(json)
  })
})
