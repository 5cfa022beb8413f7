/**
 * The hostile callers and model servers of `attacked-gateway.ts`, in a process of their own. The process reports the ports of its model servers,
 * then starts and stops attacks by name.
 */
import { createSocket } from 'node:dgram'
import { createServer as createHttpServer } from 'node:http'
import { createServer, connect, type Server, type Socket } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Attack, ATTACKS, type AttackOrder, type AttackPorts, type AttackSite, SILENT_NAMES } from './attack-protocol.ts'
import { listening } from '../listening.ts'
import { issuedKey } from '../records.ts'

// the measured clients stand for other machines: on the shared core they have priority over the attackers
setPriority(19)

const site = JSON.parse(process.argv[2] ?? '') as AttackSite
const MB = 1_000_000
const PIECE = 16_384
/** Pause of the slow model server after each piece of up to 64 KiB. With it, the server needs some 5 s for a file. */
const SLOW_READ_MS = 10
const BOMB = gzipSync(Buffer.alloc(100 * MB, 0x20))
const DEEP = Buffer.from(`${'['.repeat(2 * MB)}${']'.repeat(2 * MB)}`)
const ELEMENTS = `{"model":"good","messages":[${'{},'.repeat(1.5 * MB)}{}]}`

/** A sound file of 25 MB in a form, as `/v1/audio/transcriptions` takes it. */
const FORM = [
  '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nslow\r\n',
  `--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n${'s'.repeat(25 * MB)}\r\n--x--\r\n`,
].join('')
const FORM_END = Buffer.from('--x--\r\n')

const post = (model: string, more = '', length?: number): string => {
  const body = `{"model":"${model}","max_tokens":5,"messages":[{"role":"user","content":"hi"}]${more}}`
  return `${head(site.credential, length ?? body.length)}${length === undefined ? body : ''}`
}
const upload = (): string =>
  `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${site.credential}\r\ncontent-type: multipart/form-data; boundary=x\r\ncontent-length: ${FORM.length}\r\n\r\n${FORM}`
const head = (credential: string, length: number, path = '/v1/chat/completions'): string =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${credential}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`

/** A request with an image of 20 MB, which a gateway has to translate. */
const IMAGE_REQUEST = message(
  'images',
  `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"${'A'.repeat(20 * MB)}"}}`,
)
const STREAM_REQUEST = message('paced', '{"type":"text","text":"hi"}', ',"stream":true')
/** Translated streams beside the images. */
const STREAMS = 100
/** Pause between two events of such a stream. */
const EVENT_MS = 50

function message(model: string, block: string, more = ''): string {
  const body = `{"model":"${model}","max_tokens":5,"messages":[{"role":"user","content":[${block}]}]${more}}`
  return `${head(site.credential, body.length, '/v1/messages')}${body}`
}

function open(isRunning: AbortSignal): Socket {
  const socket = connect(site.port, site.host)
  socket.on('error', () => undefined)
  isRunning.addEventListener('abort', () => socket.destroy(), { once: true })
  return socket
}

/** Writes in pieces: one system call for megabytes would block the core that the measured clients share. */
function send(socket: Socket, text: string): void {
  for (let at = 0; at < text.length; at += PIECE) socket.write(text.slice(at, at + PIECE))
}

/** Sends `text` again and again over one connection, each time when data of an answer arrives. */
async function askAgain(isRunning: AbortSignal, text: () => string): Promise<void> {
  while (!isRunning.aborted) {
    const socket = open(isRunning)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('data', () => send(socket, text()))
    send(socket, text())
    await closed
    await sleep(10)
  }
}

/** Sends `text` over one connection, never reads, and repeats this whenever the connection is closed. */
async function neverRead(isRunning: AbortSignal, text: string): Promise<void> {
  while (!isRunning.aborted) {
    const socket = open(isRunning)
    socket.pause()
    socket.write(text)
    await new Promise((resolve) => socket.once('close', resolve))
    await sleep(10)
  }
}

/** A model server that reads some 5 MB a second, and answers when it has the end of the form. */
async function serveSlowly(): Promise<number> {
  const server = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .on('data', (piece) => {
        if (piece.subarray(-FORM_END.length).equals(FORM_END)) socket.write(json(Buffer.from('{"text":"s"}')))
        socket.pause()
        setTimeout(() => socket.resume(), SLOW_READ_MS)
      })
  })
  return listening(server, site.host)
}

/** Reads a stream to its end, and asks for the next one. */
async function readStreams(isRunning: AbortSignal): Promise<void> {
  while (!isRunning.aborted) {
    const socket = open(isRunning)
    socket.resume()
    socket.write(STREAM_REQUEST)
    await new Promise((resolve) => socket.once('close', resolve))
    await sleep(10)
  }
}

/** A model server that reads bodies of any size as fast as they come. */
async function serveImages(): Promise<number> {
  const answer = JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'seen' }, finish_reason: 'stop' }] })
  const server = createHttpServer((request, response) => {
    request.on('end', () => response.setHeader('content-type', 'application/json').end(answer)).resume()
  })
  return listening(server, site.host)
}

/** A model server whose streams have an event now and then, and no end. */
async function servePaced(): Promise<number> {
  const server = createHttpServer((request, response) => {
    request.on('end', () => response.writeHead(200, { 'content-type': 'text/event-stream' })).resume()
    const timer = setInterval(() => response.headersSent && response.write(EVENT), EVENT_MS)
    response.on('close', () => clearInterval(timer))
  })
  return listening(server, site.host)
}

function many(count: number, job: () => Promise<void>): void {
  for (let i = 0; i < count; i++) void job()
}

const START: Readonly<Record<Attack, (isRunning: AbortSignal) => void>> = {
  'unread pipelines': (on) => many(20, () => neverRead(on, 'GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(5_000))),
  'stalled uploads': (on) => many(200, () => neverRead(on, `${head(site.credential, MB)}{"model":"good",`)),
  'bodies of {},{}': (on) => many(4, () => askAgain(on, () => `${head(site.credential, ELEMENTS.length)}${ELEMENTS}`)),
  'distinct keys': (on) => many(16, () => askAgain(on, () => `${head(issuedKey('x').credential, 2)}{}`)),
  'gzip bombs': (on) => many(4, () => askAgain(on, () => post('bomb'))),
  'deep answers': (on) => many(4, () => askAgain(on, () => post('deep'))),
  'empty events': (on) => many(8, () => askAgain(on, () => post('flood', ',"stream":true'))),
  'a loop of gateways': (on) => many(8, () => askAgain(on, () => post('loop'))),
  'unread streams': (on) => many(100, () => neverRead(on, post('endless', ',"stream":true'))),
  '/v1/models': (on) =>
    many(16, () => askAgain(on, () => `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${site.credential}\r\n\r\n`)),
  'silent names': (on) => SILENT_NAMES.forEach((name) => many(8, () => askAgain(on, () => post(name)))),
  'large files': (on) => many(1, () => askAgain(on, upload)), // as many as the gateway takes of one key
  'large images': (on) => {
    many(STREAMS, () => readStreams(on))
    many(1, () => askAgain(on, () => IMAGE_REQUEST))
  },
}

async function serve(answer: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer((socket) => socket.on('error', () => undefined).on('data', () => answer(socket)))
  return listening(server, site.host)
}

const json = (body: Buffer, more = ''): Buffer =>
  Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${more}content-length: ${body.length}\r\n\r\n`), body])
const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'

/** Writes `text` again and again while the reader keeps up. */
function pour(socket: Socket, text: string): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(text));
  }
  socket.write(STREAM_HEAD)
  socket.on('drain', more)
  more()
}

const EVENT = `data: {"choices":[{"index":0,"delta":{"content":"${'x'.repeat(1_000)}"}}]}\n\n`
const ports: AttackPorts = {
  bomb: await serve((socket) => socket.write(json(BOMB, 'content-encoding: gzip\r\n'))),
  deep: await serve((socket) => socket.write(json(DEEP))),
  flood: await serve((socket) => pour(socket, 'data:\n\n'.repeat(1_000))),
  endless: await serve((socket) => pour(socket, EVENT.repeat(50))),
  slow: await serveSlowly(),
  images: await serveImages(),
  paced: await servePaced(),
}

createSocket('udp4').bind(53, site.host) // a name server that never answers

let running = new AbortController()
process.on('message', ({ start }: AttackOrder) => {
  running.abort()
  running = new AbortController()
  for (const attack of start === 'all together' ? ATTACKS : ATTACKS.filter((one) => one === start)) START[attack](running.signal)
})
process.on('disconnect', () => process.exit())
process.send?.(ports)
