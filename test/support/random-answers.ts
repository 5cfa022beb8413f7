/** Unusual answers of model servers: forms that HTTP, JSON and event streams allow, and forms that they forbid. */
import { deflateSync, gzipSync } from 'node:zlib'
import type { SeededRandom } from './seeded-random.ts'

export type AnswerEnd = 'keep' | 'close' | 'reset' | 'hang'

/** One answer: bytes as they go out, with a turn of the event loop between two pieces. */
export interface RandomAnswer {
  readonly pieces: readonly Buffer[]
  readonly end: AnswerEnd
}

/** The word in a second, unrequested answer of the server. A client must never read this word. */
export const SMUGGLED = 'SMUGGLED'

const STATUS_LINES = [
  ...Array.from({ length: 60 }, () => 'HTTP/1.1 200 OK'),
  ...[201, 204, 206, 301, 302, 304, 307, 400, 401, 403, 404, 409, 413, 422, 429, 451, 500, 502, 503, 504, 529].map(
    (code) => `HTTP/1.1 ${code} Whatever`,
  ),
  ...['HTTP/1.1 200', 'HTTP/1.0 200 OK', 'HTTP/1.1 999 X', 'HTTP/2 200 OK', 'HTTP/1.1 20 OK', 'ICY 200 OK', 'nonsense', ''],
  ...['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK', 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK'],
  'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket',
] as unknown as readonly [string, ...string[]]

const TYPES = [
  'application/json',
  'text/event-stream',
  'text/event-stream; charset=utf-8',
  'text/html',
  'application/json, text/html',
  '',
] as const

const HEADERS = [
  'connection: close',
  'connection: keep-alive, x',
  'keep-alive: timeout=0',
  'location: http://127.0.0.1:1/',
  'retry-after: -5',
  'set-cookie: a=b\r\nset-cookie: c=d',
  'x-folded: one\r\n two',
  'x-bad name: x',
  'x-empty:',
  `x-long: ${'l'.repeat(20_000)}`,
  Array.from({ length: 300 }, (_, i) => `x-${i}: ${i}`).join('\r\n'),
  'x-nul: \u0000',
] as const

const CHUNK = (text: string): string =>
  `data: {"id":"1","object":"chat.completion.chunk","model":"other","choices":[{"index":0,"delta":{"content":"${text}"}}]}`
const EVENTS = [
  'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}',
  'data: [DONE]',
  'data: {"error":{"message":"the model broke","type":"server_error"}}',
  'event: message_start\ndata: {"type":"message_start","message":{"id":"1","model":"other","usage":{"input_tokens":1,"output_tokens":0}}}',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}',
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}',
  'event: message_stop\ndata: {"type":"message_stop"}',
  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"full"}}',
  'event: ping\ndata: {"type":"ping"}',
  ': a comment',
  '',
  'data:',
  'data: not json',
  'data: {"model":',
  'data: []',
  'data: null',
  'event: only-a-name',
  'id: 1\nretry: 0',
  'data: {"model":{"a":1},"choices":"none"}',
  `data: {"model":"other","choices":[{"delta":{"content":"${'x'.repeat(70_000)}"}}]}`,
] as const

const BODIES = [
  '',
  '{}',
  '[]',
  'null',
  '"text"',
  '{"error":"a string"}',
  '{"error":{"message":"no such model","type":"invalid_request_error","code":404}}',
  '{"error":{"type":"exceed_context_size_error","message":"too long","n_prompt_tokens":9,"n_ctx":4}}',
  '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}',
  '{"model":"other","choices":[',
  '{"model":"one","model":"two","choices":[]}',
  '<html><body>502 Bad Gateway</body></html>',
  `${'['.repeat(6_000)}${']'.repeat(6_000)}`,
  `{"model":"other","a":"${'y'.repeat(200_000)}"}`,
  '\ufeff{"model":"other"}',
  '{"model":"\\u006fther","usage":{"prompt_tokens":-1,"completion_tokens":1e99}}',
] as const

/** Inflates to a thousand times its size. */
const BOMB = gzipSync(Buffer.alloc(3_000_000, 0x20))

/** The kind of answer that the request asked for. */
export interface Asked {
  /** The word of this request alone; its client may see it. */
  readonly mark: string
  readonly isStream: boolean
}

/** A random answer, mostly of the requested kind, so that many answers pass the first check. */
export function randomAnswer(random: SeededRandom, { mark, isStream: isWanted }: Asked): RandomAnswer {
  const isStream = random.chance(0.85) ? isWanted : random.chance(0.5)
  const right = isStream ? 'text/event-stream' : 'application/json'
  const type = random.chance(0.8) ? right : random.pick(TYPES)
  const encoded = encode(random, isStream ? eventStream(random, mark) : plainBody(random, mark))
  const framed = frame(random, encoded.body)
  const head = [
    random.pick(STATUS_LINES),
    type && `content-type: ${type}`,
    encoded.header,
    ...framed.headers,
    random.chance(0.2) ? random.pick(HEADERS) : '',
  ]
  const bytes = Buffer.concat([Buffer.from(`${head.filter((line, at) => at === 0 || line !== '').join('\r\n')}\r\n\r\n`), framed.body])
  const isCut = random.chance(0.03)
  const sent = isCut ? bytes.subarray(0, random.below(bytes.length)) : bytes
  return { pieces: torn(random, sent), end: endOf(random, isCut || framed.isClosed) }
}

function eventStream(random: SeededRandom, mark: string): Buffer {
  const events = Array.from({ length: 1 + random.below(8) }, () => (random.chance(0.5) ? CHUNK(mark) : random.pick(EVENTS)))
  if (random.chance(0.6)) events.push('data: [DONE]')
  const ending = random.pick(['\n\n', '\n\n', '\n\n', '\r\n\r\n', '\r\r', '\n'])
  const text = events.map((event) => (ending.startsWith('\r\n') ? event.replaceAll('\n', '\r\n') : event)).join(ending)
  return Buffer.concat([Buffer.from(random.chance(0.05) ? `\ufeff${text}` : text), Buffer.from(random.chance(0.8) ? ending : '')])
}

function plainBody(random: SeededRandom, mark: string): Buffer {
  if (random.chance(0.5))
    return Buffer.from(`{"id":"1","model":"other","choices":[{"message":{"role":"assistant","content":"${mark}"}}],"usage":{}}`)
  if (random.chance(0.1)) return Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0xc0, 0x80, 0x7d])
  return Buffer.from(random.pick(BODIES))
}

function encode(random: SeededRandom, body: Buffer): { header: string; body: Buffer } {
  if (random.chance(0.8)) return { header: '', body }
  const gzip = gzipSync(body)
  return random.pick<{ header: string; body: Buffer }>([
    { header: 'content-encoding: gzip', body: gzip },
    { header: 'content-encoding: gzip', body: gzip.subarray(0, gzip.length - 9) },
    { header: 'content-encoding: gzip', body },
    { header: 'content-encoding: gzip, gzip', body: gzipSync(gzip) },
    { header: 'content-encoding: gzip', body: BOMB },
    { header: 'content-encoding: deflate', body: deflateSync(body) },
    { header: 'content-encoding: br', body },
    { header: 'content-encoding: something', body },
    { header: 'content-encoding: identity', body },
  ])
}

interface Framed {
  readonly headers: readonly string[]
  readonly body: Buffer
  readonly isClosed: boolean
}

function frame(random: SeededRandom, body: Buffer): Framed {
  const length = `content-length: ${body.length}`
  const chunked = 'transfer-encoding: chunked'
  const smuggled = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n"${SMUGGLED}"`)
  const whole = (...headers: string[]): Framed => ({ headers, body, isClosed: false })
  if (random.chance(0.4)) return whole(length)
  if (random.chance(0.5)) return { headers: [chunked], body: inChunks(random, body), isClosed: false }
  return random.pick<Framed>([
    { headers: [], body, isClosed: true },
    { headers: ['connection: close'], body, isClosed: true },
    { headers: [`content-length: ${body.length + 5}`], body, isClosed: true },
    whole(`content-length: ${Math.max(0, body.length - 5)}`),
    whole('content-length: -1'),
    whole('content-length: 1e3'),
    whole(length, `content-length: ${body.length + 1}`),
    whole(length, chunked),
    { headers: [chunked, length], body: inChunks(random, body), isClosed: false },
    { headers: [chunked], body: inChunks(random, body).subarray(0, -5), isClosed: true },
    { headers: [chunked], body: Buffer.concat([Buffer.from('zz\r\n'), body]), isClosed: true },
    { headers: [chunked], body: Buffer.concat([Buffer.from('ffffffffffffffff\r\n'), body]), isClosed: true },
    { headers: ['transfer-encoding: gzip, chunked'], body: inChunks(random, body), isClosed: false },
    { headers: [length], body: Buffer.concat([body, smuggled]), isClosed: false },
    { headers: [chunked], body: Buffer.concat([inChunks(random, body), smuggled]), isClosed: false },
  ])
}

function inChunks(random: SeededRandom, body: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length;) {
    const size = Math.min(body.length - at, 1 + random.below(Math.max(64, body.length / 4)))
    const extension = random.chance(0.02) ? ';x=y' : ''
    parts.push(Buffer.from(`${size.toString(16)}${extension}\r\n`), body.subarray(at, at + size), Buffer.from('\r\n'))
    at += size
  }
  parts.push(Buffer.from(random.chance(0.05) ? '0\r\nx-trailer: y\r\n\r\n' : '0\r\n\r\n'))
  return Buffer.concat(parts)
}

function torn(random: SeededRandom, bytes: Buffer): Buffer[] {
  if (random.chance(0.5)) return [bytes]
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const size = random.chance(0.2) ? 1 : 1 + random.below(Math.max(32, bytes.length / 3))
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

function endOf(random: SeededRandom, isClosed: boolean): AnswerEnd {
  if (random.chance(0.004)) return 'hang'
  if (random.chance(0.05)) return 'reset'
  return isClosed || random.chance(0.1) ? 'close' : 'keep'
}
