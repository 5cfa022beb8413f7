import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ChunkList } from './chunk-list.ts'

test('bytes in chunks of any sizes come back in their order, and the list can be used again', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1_000, max: 1_050 }), fc.constant(20_000)))
  fc.assert(
    fc.property(sizes, sizes, (first, second) => {
      const list = new ChunkList()
      for (const round of [first, second]) {
        const chunks = round.map((size, index) => Buffer.alloc(size, index))
        for (const chunk of chunks) list.add(chunk)
        const whole = Buffer.concat(chunks)
        expect(list.bytes).toBe(whole.length)
        expect(list.take().equals(whole)).toBe(true)
        expect(list.bytes).toBe(0)
      }
    }),
  )
})

test('a chunk that comes alone is not copied', () => {
  const list = new ChunkList()
  const chunk = Buffer.from('{}')
  list.add(chunk)
  expect(list.take()).toBe(chunk)
})

test('short chunks after the first are copied, so that they leave no objects behind', () => {
  const list = new ChunkList()
  const chunk = Buffer.from('x')
  list.add(Buffer.from('first'))
  for (const letter of 'abc'.repeat(10_000)) {
    chunk.write(letter)
    list.add(chunk)
  }
  expect(String(list.take())).toBe('first' + 'abc'.repeat(10_000))
})
