/** The checker of Messages streams finds each broken rule, in every stream that a test reads. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkedFetch } from '../e2e/checked-fetch.ts'
import { checkedStreamsEnv, STREAMS_FILE, takeFaults, withCheckedStreams } from '../support/checked-streams.ts'
import { listening } from '../support/listening.ts'
import { checkMessageStart, checkMessageStream, checkOneEnd } from '../support/message-grammar.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

type Fields = Readonly<Record<string, unknown>>

const event = (type: string, fields: Fields = {}): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
const start = (fields: Fields = {}): string =>
  event('message_start', { message: { id: `msg_${'a'.repeat(32)}`, usage: { input_tokens: 3 }, ...fields } }) + event('ping')
const opens = (index: number, block: Fields): string => event('content_block_start', { index, content_block: block })
const delta = (index: number, fields: Fields): string => event('content_block_delta', { index, delta: fields })
const stops = (index: number): string => event('content_block_stop', { index })
const end = (reason: string, usage: Fields = { input_tokens: 3, output_tokens: 2 }): string =>
  event('message_delta', { delta: { stop_reason: reason }, usage }) + event('message_stop')
const text = (index: number, words = 'a'): string =>
  opens(index, { type: 'text', text: '' }) + delta(index, { type: 'text_delta', text: words }) + stops(index)
const thinks = (index: number, ...more: string[]): string =>
  opens(index, { type: 'thinking' }) + delta(index, { type: 'thinking_delta', thinking: 'hm' }) + more.join('') + stops(index)
const signs = (index: number): string => delta(index, { type: 'signature_delta', signature: '' })
const calls = (index: number, json: string, named: Fields = { id: 'c1', name: 'read' }): string =>
  opens(index, { type: 'tool_use', ...named }) + delta(index, { type: 'input_json_delta', partial_json: json }) + stops(index)
const error = event('error', { error: { type: 'api_error', message: 'x' } })

const WHOLE: Readonly<Record<string, string>> = {
  'text, a call and thinking': start() + text(0) + thinks(1, signs(1)) + calls(2, '{"a":1}') + end('tool_use'),
  nothing: start() + end('end_turn', { input_tokens: 3, output_tokens: 0 }),
  'arguments that were cut off': start() + calls(0, '{"a"') + end('max_tokens'),
  'a failure in the middle of a block': start() + opens(0, { type: 'text', text: '' }) + error,
  'the stream of another server, which has no ping, no usage, an empty block and open blocks side by side':
    start({ id: 'other' }) +
    opens(0, { type: 'text', text: '' }) +
    calls(1, '{}') +
    stops(0) +
    event('message_delta', { delta: { stop_reason: 'end_turn' } }) +
    event('message_stop'),
}

const BROKEN: Readonly<Record<string, string>> = {
  'a second message_start': start() + start() + end('end_turn'),
  'content_block_start comes before message_start': text(0) + start() + end('end_turn'),
  'no ping follows message_start': start().replace(event('ping'), '') + text(0) + end('end_turn'),
  'message_start has no estimate': start({ usage: { input_tokens: 0 } }) + end('end_turn'),
  'a block starts while another one is open': start() + opens(0, { type: 'text' }) + text(1) + end('end_turn'),
  'block 1 has the index 2': start() + text(0) + text(2) + end('end_turn'),
  'a thinking_delta in a block of kind text': start() + opens(0, { type: 'text' }) + delta(0, { type: 'thinking_delta', thinking: 'hm' }),
  'a delta of block 1, which is not open': start() + text(0) + delta(1, { type: 'text_delta', text: 'a' }),
  'block 0 stops and is not open': start() + text(0) + stops(0),
  'block 0 has nothing': start() + opens(0, { type: 'text' }) + stops(0),
  'or an empty delta': start() + text(0, ''),
  'the thinking in block 0 does not end with its only signature': start() + thinks(0),
  'the thinking in block 1 does not end with its only signature': start() + text(0) + thinks(1, signs(1), signs(1)),
  'the call in block 0 has no id': start() + calls(0, '{}', { name: 'read' }),
  'the arguments of a call are no object': start() + calls(0, '[1]') + end('tool_use'),
  'stop_reason end_turn with 1 calls': start() + calls(0, '{}') + end('end_turn'),
  'stop_reason tool_use with 0 calls': start() + text(0) + end('tool_use'),
  'message_delta comes while a block is open': start() + opens(0, { type: 'text' }) + end('end_turn'),
  'a second message_delta': start() + end('end_turn').replace(event('message_stop'), '') + end('end_turn'),
  'a block starts after message_delta': start() + end('end_turn').replace(event('message_stop'), '') + text(0),
  'message_delta has no usage': start() + end('end_turn', { output_tokens: 1 }),
  'message_stop comes before message_delta': start() + event('message_stop'),
  'ping follows message_stop': start() + end('end_turn') + event('ping'),
  'message_stop follows error': start() + error + event('message_stop'),
  'error follows message_stop': start() + end('end_turn') + error,
  'unknown event completion': start() + event('completion'),
  'the stream has neither message_stop nor error': start() + text(0),
  'the event x has data of type ping': start() + 'event: x\ndata: {"type":"ping"}\n\n',
}

describe('the grammar', () => {
  it.each(Object.entries(WHOLE))('takes %s', (_, stream) => {
    expect(() => checkMessageStream(stream)).not.toThrow()
    expect(() => checkOneEnd(stream)).not.toThrow()
  })

  it.each(Object.entries(BROKEN))('finds: %s', (fault, stream) => {
    expect(() => checkMessageStream(stream)).toThrow(fault)
  })

  it('takes the whole events of a stream without its end, and finds what is wrong in them', () => {
    expect(() => checkMessageStart(`${start() + text(0)}event: content_bl`)).not.toThrow()
    expect(() => checkMessageStart(start() + text(1))).toThrow('block 0 has the index 1')
  })

  it.each([start() + error + end('end_turn'), start() + end('end_turn') + event('message_stop'), start() + text(0)])(
    'finds a wrong end of a server that may send nonsense',
    (stream) => {
      expect(() => checkOneEnd(stream)).toThrow('the stream has the ends')
    },
  )
})

describe('a stream that a gateway writes', () => {
  const id = 'req_1'
  const ids = { 'x-request-id': id, 'request-id': id }
  let url = ''
  let write: (response: ServerResponse) => unknown = () => undefined
  let headers: Readonly<Record<string, string>> = ids
  const server = createServer((_, response) => write(response.writeHead(200, { ...headers, 'content-type': 'text/event-stream' })))

  beforeEach(async () => {
    headers = ids
    url = `http://127.0.0.1:${await listening(server)}/v1/messages?beta=true`
  })
  afterEach(() => new Promise((resolve) => server.close(resolve).closeAllConnections()))

  const get = async (address = url): Promise<string> => (await fetch(address)).text().catch(() => 'broken')

  it('is checked, cut anywhere, and arrives unchanged', async () => {
    const stream = start() + text(0, 'grüße 🐟') + end('end_turn')
    write = async (response) => {
      for (const byte of Buffer.from(stream)) response.write(Buffer.from([byte]))
      response.end()
    }
    expect([await get(), takeFaults()]).toEqual([stream, []])
    write = (response) => response.end(start() + text(1))
    expect([await get(), takeFaults()]).toEqual([
      start() + text(1),
      [expect.stringMatching(/block 0 has the index 1 in the stream\nevent: m/)],
    ])
    write = (response) => response.end(Buffer.from(start() + text(0, 'é')).toString('latin1'), 'latin1')
    expect([await get(), takeFaults()]).toEqual([start() + text(0, 'é'), [expect.stringMatching(/neither message_stop nor error[^]*é/)]])
  })

  it('is checked as far as it was written', async () => {
    for (const [written, faults] of [
      [`${start()}${text(0)}event: `, []],
      [start() + start(), [expect.stringContaining('a second message_start')]],
    ] as const) {
      write = (response) => response.write(written, () => response.destroy())
      expect([await get(), takeFaults()]).toEqual(['broken', faults])
    }
  })

  it('is none of another path or another server', async () => {
    write = (response) => response.end(start())
    await get(url.replace('messages', 'completions'))
    headers = { 'request-id': id }
    await get()
    expect(takeFaults()).toEqual([])
  })

  it('is checked in a program, also in one that is killed at once', async () => {
    const program = `require('node:http').createServer((_, response) => response
      .writeHead(200, { ...${JSON.stringify(ids)}, 'content-type': 'text/event-stream' }).write(${JSON.stringify(start() + start())}))
      .listen(0, function () { console.log(this.address().port) })`
    const child = spawn(process.execPath, ['-e', program], { env: checkedStreamsEnv(), stdio: ['ignore', 'pipe', 'inherit'] })
    const [port] = (await once(child.stdout, 'data')) as [Buffer]
    const { body } = await fetch(`http://127.0.0.1:${port.toString().trim()}/v1/messages`)
    await body?.getReader().read()
    child.kill('SIGKILL')
    await once(child, 'close')
    expect(takeFaults()).toEqual([expect.stringContaining('a second message_start')])
  })

  it('fails the command that has started the gateway, and so does a run without a stream', async () => {
    const file = process.env[STREAMS_FILE]
    const exitCode = (stream?: string, mustHaveSome = true): Promise<number> => {
      write = (response) => response.end(stream)
      const run = async (): Promise<number> => (stream === undefined ? 0 : Number((await get()) !== stream))
      return withCheckedStreams({ folder: temporaryFolder(), mustHaveSome, run })
    }
    const codes = [
      await exitCode(start() + text(0) + end('end_turn')),
      await exitCode(start()),
      await exitCode(),
      await exitCode(undefined, false),
    ]
    process.env[STREAMS_FILE] = file
    expect(codes).toEqual([0, 1, 1, 0])
  })

  it('fails for a client in a container at the first wrong event', async () => {
    const checked = checkedFetch(fetch)
    headers = {}
    write = (response) => response.end(start() + text(0) + end('end_turn'))
    expect(await (await checked(url)).text()).toBe(start() + text(0) + end('end_turn'))
    for (const stream of [start() + text(1), start()]) {
      write = (response) => response.end(stream)
      await expect((await checked(url)).text()).rejects.toThrow(/block 0 has the index 1|neither/)
    }
  })
})
