/** Servers of chat completions that send what vLLM, SGLang, DeepSeek and llama.cpp send, cut at random places: the message of the client, and the money. */
import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { checkMessageStream } from '../../test/support/message-grammar.ts'
import { rebuilt, saidIn } from '../../test/support/rebuilt-message.ts'
import { RECORDED_STREAMS, type RecordedStream, STOP_SEQUENCE } from '../../test/support/recorded-streams.ts'
import { SeededRandom } from '../../test/support/seeded-random.ts'
import { DONE, type FakeBackend, gatewayTo, type Harness, MESSAGES, type Reply, sse, until } from '../../test/support/upstream-harness.ts'

const SEED = 31
const ROUNDS = 8
const LONGEST_CUT = 60
const REQUEST = {
  ...{ model: 'llama', max_tokens: 100, stream: true, stop_sequences: [STOP_SEQUENCE] },
  messages: [{ role: 'user', content: 'hi' }],
  tools: ['read', 'list'].map((name) => ({ name, input_schema: { type: 'object' } })),
}
const random = new SeededRandom(SEED)

/** Each piece leaves in a turn of the event loop of its own. @param end of the last piece; default: the answer ends */
function inPieces(bytes: Buffer, end: (response: ServerResponse) => void = (response) => void response.end()): Reply {
  return (response) => void write(sse(response), bytes).then(() => end(response))
}

async function write(response: ServerResponse, bytes: Buffer): Promise<void> {
  for (let start = 0, size = 0; start < bytes.length; start += size) {
    size = 1 + random.below(LONGEST_CUT)
    response.write(bytes.subarray(start, start + size))
    await setImmediate()
  }
}

async function toServer(
  engine: RecordedStream['engine'],
  reply: Reply,
): Promise<{ readonly gateway: Harness; readonly backend: FakeBackend }> {
  return gatewayTo(reply, { tickMs: 60_000, backend: { routes: ['chat/completions'], engine, upstreamModel: 'up' } })
}

async function streamed({ engine }: RecordedStream, reply: Reply): Promise<{ readonly gateway: Harness; readonly text: string }> {
  const { gateway } = await toServer(engine, reply)
  const { text } = await gateway.post(MESSAGES, REQUEST)
  await until(() => gateway.outcomes.length + gateway.refusals.length === 1)
  return { gateway, text }
}

describe.each(RECORDED_STREAMS)('$name', (recording) => {
  const { events, said } = recording
  const bytes = Buffer.from(events.join(''))
  const cachedInputTokens = said.usage.cache_read_input_tokens ?? 0

  it('is the same message and the same money however it is cut', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { gateway, text } = await streamed(recording, inPieces(bytes))
      expect(saidIn(checkMessageStream(text))).toEqual(said)
      expect(gateway.outcomes).toMatchObject([
        { error: undefined, usage: { inputTokens: 30, cachedInputTokens, outputTokens: 20, isEstimated: false } },
      ])
    }
  })

  it('is the same message if the server does not end its answer', async () => {
    const { text } = await streamed(
      recording,
      inPieces(bytes, () => undefined),
    )
    expect(saidIn(checkMessageStream(text))).toEqual(said)
  })

  it('ends with one error event and is charged if the connection is lost', async () => {
    const isFinish = (event: string): boolean => /"finish_reason":"/.test(event)
    const finish = events.findIndex(isFinish)
    const first = events.findIndex((event) => event.startsWith('data:'))
    for (let round = 0; round < ROUNDS; round++) {
      const whole = Buffer.from(events.slice(0, first + 1 + random.below(finish - first)).join(''))
      const half = Buffer.from(events[finish] ?? '')
      const sent = Buffer.concat([whole, half.subarray(0, random.below(half.length - 2))])
      const { gateway, text } = await streamed(
        recording,
        inPieces(sent, (response) => void response.write('', () => response.destroy())), // after the pieces have left
      )
      const { ends, thinking, text: words } = rebuilt(checkMessageStream(text))
      expect(ends).toEqual(['error'])
      expect([said.thinking.startsWith(thinking), said.text.startsWith(words)]).toEqual([true, true])
      expect(gateway.outcomes).toMatchObject([{ error: { row: { id: 'streamBroken' } }, usage: { isEstimated: true } }])
    }
  })
})

describe('an error in the middle of a stream', () => {
  const FAILURES: ReadonlyArray<readonly [server: RecordedStream['engine'], frames: string]> = [
    ['VLLM', `data: {"error":{"message":"the engine died","type":"InternalServerError","param":null,"code":500}}\n\n${DONE}`],
    ['SGLang', `data: {"error":{"object":"error","message":"the engine died","type":"InternalServerError","code":500}}\n\n${DONE}`],
    ['LlamaCpp', 'data: {"error":{"code":500,"message":"the engine died","type":"server_error"}}\n\n'],
    ['TGI', `data: {"error":{"message":"the engine died","http_status_code":424}}\n\n${DONE}`],
    ['DeepSeek', ''],
  ]

  it.each(FAILURES)('of %s is one error event without message_stop', async (engine, frames) => {
    const recording = RECORDED_STREAMS.find((one) => one.engine === engine) ?? RECORDED_STREAMS[0]
    if (recording === undefined) throw new RangeError('no recording')
    const begun = recording.events.slice(0, 6).join('')
    const { gateway, text } = await streamed({ ...recording, engine }, inPieces(Buffer.from(begun + frames)))
    expect(rebuilt(checkMessageStream(text)).ends).toEqual(['error'])
    expect(gateway.outcomes[0]?.error?.row.id).toBe('streamBroken')
  })
})
