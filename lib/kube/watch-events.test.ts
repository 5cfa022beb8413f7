import fc from 'fast-check'
import { expect, test } from 'vitest'
import { watchEvents, type WatchEvent } from './watch-events.ts'

async function* chunksOf(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts
}

async function read(parts: readonly Uint8Array[]): Promise<WatchEvent[]> {
  const found: WatchEvent[] = []
  for await (const event of watchEvents(chunksOf(parts))) found.push(event)
  return found
}

const event = (name: string): string => `${JSON.stringify({ type: 'ADDED', object: { metadata: { name } } })}\n`

test('events survive any cut of the bytes, also inside a character', async () => {
  const bytes = Buffer.from(event('gebühr-日本') + event('schlüssel-🔑'))
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 8 }), async (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
      const parts = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
      expect((await read(parts)).map((each) => each.object)).toEqual([
        { metadata: { name: 'gebühr-日本' } },
        { metadata: { name: 'schlüssel-🔑' } },
      ])
    }),
  )
})

test('an unfinished last line is dropped, since the next watch brings it again', async () => {
  expect(await read([Buffer.from(event('whole') + event('half').slice(0, 20))])).toHaveLength(1)
})

test('a line that is not an event is refused without quoting it', async () => {
  const secret = 'sk-hg1-do-not-print'
  await expect(read([Buffer.from(`{"type":"ADDED","object":"${secret}\n`)])).rejects.toThrow(/^a line of the watch is not an event$/)
  await expect(read([Buffer.from(`{"type":"${secret}","object":{}}\n`)])).rejects.not.toThrow(secret)
})
