import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { BodyDecoder } from './body-decoder.ts'

const MIB = 2 ** 20
/** Maximum size of one read of a socket. */
const CHUNK_BYTES = 65_536

interface DecodedAnswer {
  readonly bytes: number
  readonly failure: Error | undefined
}

/** Inflates an answer in chunks of this size. */
function decoded(answer: Buffer): Promise<DecodedAnswer> {
  const { promise, resolve } = Promise.withResolvers<DecodedAnswer>()
  let bytes = 0
  const source = { pause: () => undefined, resume: () => undefined }
  const decoder = new BodyDecoder('gzip', source, {
    data: (chunk) => (bytes += chunk.length),
    end: () => resolve({ bytes, failure: undefined }),
    failed: (failure) => resolve({ bytes, failure }),
  })
  for (let at = 0; at < answer.length; at += CHUNK_BYTES) decoder.write(answer.subarray(at, at + CHUNK_BYTES))
  decoder.end()
  return promise
}

describe('a compressed answer', () => {
  test('that is a bomb ends before a chunk of it has become megabytes', async () => {
    const { bytes, failure } = await decoded(gzipSync(Buffer.alloc(60 * MIB, ' ')))
    expect(failure?.message).toBe('the answer inflates too much')
    expect(bytes).toBeLessThan(MIB)
  })

  test('of a model server passes whole, however large it is', async () => {
    const choice = JSON.stringify({ index: 0, text: 'the same words again and again, as models write them' })
    const text = Array.from({ length: 100_000 }, (_, i) => `${i} ${choice}`).join()
    expect(await decoded(gzipSync(text))).toEqual({ bytes: text.length, failure: undefined })
  })

  test('that is small may be fully uniform', async () => {
    expect(await decoded(gzipSync(Buffer.alloc(100_000, ' ')))).toEqual({ bytes: 100_000, failure: undefined })
  })
})
