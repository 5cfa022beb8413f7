import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseSseEvent, splitEvents, SseSplitter } from './sse.ts'

const text = (bytes: Buffer): string => bytes.toString('utf8')

/** Feeds the bytes in pieces of the given sizes (repeated) and returns every non-empty piece handed on, then the rest. */
function relay(input: Buffer, sizes: readonly number[]): { wholes: Buffer[]; rest: Buffer } {
  const splitter = new SseSplitter()
  const wholes: Buffer[] = []
  for (let at = 0, turn = 0; at < input.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    const whole = splitter.push(input.subarray(at, at + size))
    if (whole.length > 0) wholes.push(whole)
    at += size
  }
  return { wholes, rest: splitter.end() }
}

describe('SseSplitter', () => {
  test('a chunk that ends at an event boundary is handed on as the same bytes without a copy', () => {
    const chunk = Buffer.from('data: a\n\ndata: b\n\n')
    const whole = new SseSplitter().push(chunk)
    expect(whole.buffer).toBe(chunk.buffer)
    expect(text(whole)).toBe(text(chunk))
  })

  test('short chunks of an unfinished event are copied together: an object for each byte would fill a pod', () => {
    const splitter = new SseSplitter()
    const chunk = Buffer.from('?')
    splitter.push(Buffer.from('data: '))
    for (const letter of 'ab'.repeat(2_000)) {
      chunk.write(letter)
      splitter.push(chunk)
    }
    expect([splitter.tailBytes, text(splitter.end())]).toEqual([4_006, `data: ${'ab'.repeat(2_000)}`])
  })

  test.each([
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ])('S1 events with %s line ends survive every cut, byte for byte', (_, end) => {
    const input = Buffer.from(`\uFEFFdata: Grüße 🚦${end}${end}: note${end}${end}event: x${end}data: {}${end}${end}data: tail`)
    for (let size = 1; size <= input.length; size++) {
      const { wholes, rest } = relay(input, [size])
      expect(text(Buffer.concat([...wholes, rest]))).toBe(text(input))
      const events = wholes.flatMap((whole) => [...splitEvents(whole)]).map(parseSseEvent)
      expect(events.filter((event) => event.data !== undefined)).toEqual([
        { event: undefined, data: 'Grüße 🚦', hasFields: true },
        { event: 'x', data: '{}', hasFields: true },
      ])
      expect(text(rest).trim()).toBe('data: tail')
    }
  })

  test('S1 any bytes in any pieces are returned unchanged, and each returned piece ends at a boundary', () => {
    const piece = fc.constantFrom('data: a', 'event: b', ':', '\n', '\r\n', '\r', '\n\n', 'é', '{"x":1}')
    fc.assert(
      fc.property(fc.array(piece), fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (pieces, sizes) => {
        const input = Buffer.from(pieces.join(''))
        const { wholes, rest } = relay(input, sizes)
        expect(text(Buffer.concat([...wholes, rest]))).toBe(text(input))
        for (const whole of wholes) {
          expect(text(whole)).toMatch(/(\n|\r)(\r\n|\n|\r)$/)
          expect(text(Buffer.concat([...splitEvents(whole)]))).toBe(text(whole))
        }
      }),
    )
  })
})

describe('parseSseEvent', () => {
  test.each([
    ['data without a space', 'data:x\n\n', { event: undefined, data: 'x', hasFields: true }],
    ['only one space is taken away', 'data:  x\n\n', { event: undefined, data: ' x', hasFields: true }],
    ['several data lines', 'data: a\ndata: b\n\n', { event: undefined, data: 'a\nb', hasFields: true }],
    ['an empty data line', 'data\n\n', { event: undefined, data: '', hasFields: true }],
    ['a comment', ': keep-alive\n\n', { event: undefined, data: undefined, hasFields: false }],
    ['a lone retry', 'retry: 500\n\n', { event: undefined, data: undefined, hasFields: true }],
    ['an event without data', 'event: ping\n\n', { event: 'ping', data: undefined, hasFields: true }],
    ['a byte order mark', '\uFEFFdata: x\n\n', { event: undefined, data: 'x', hasFields: true }],
    ['the LF of a CRLF cut in two', '\ndata: x\r\n\r\n', { event: undefined, data: 'x', hasFields: true }],
  ])('reads %s', (_, bytes, event) => {
    expect(parseSseEvent(Buffer.from(bytes))).toEqual(event)
  })
})
