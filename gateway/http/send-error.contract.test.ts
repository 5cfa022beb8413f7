import { once } from 'node:events'
import { maxHeaderSize } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { startFront, type FrontGateway, type FrontOptions } from '../../test/support/front-gateway.ts'
import { openRaw, readAnswer, type RawAnswer } from '../../test/support/raw-http.ts'
import { ErrorSender, Lingering } from './send-error.ts'
import { SERVER_SETTINGS } from './server.ts'

const MIB = 2 ** 20
const PATHS = ['/v1/chat/completions', '/v1/messages'] as const
let front: FrontGateway

async function start(options: FrontOptions = {}): Promise<void> {
  front = await startFront(options)
}

afterEach(() => front.stop())

/** Lingers until a slow machine has sent everything. */
const patient = new Lingering({ lingerMs: 60_000, maxSockets: 256 })
const PIECE = Buffer.alloc(MIB, 'x')
const CHUNK = Buffer.concat([Buffer.from(`${MIB.toString(16)}\r\n`), PIECE, Buffer.from('\r\n')])

/** Sends the whole of 40 MiB, as simple clients do, before it reads the answer. */
async function pushFortyMiB(path: string, header: string): Promise<RawAnswer> {
  const socket = openRaw(front.port, `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\n${header}\r\n\r\n`)
  const answer = readAnswer(socket)
  for (let sent = 0; sent < 40; sent++) {
    if (!socket.write(header.includes('chunked') ? CHUNK : PIECE)) await once(socket, 'drain')
  }
  if (header.includes('chunked')) socket.write('0\r\n\r\n')
  return answer
}

const DECLARED = `content-length: ${40 * MIB}`

describe('a body that is too large', () => {
  const headers = [DECLARED, 'transfer-encoding: chunked', `expect: 100-continue\r\n${DECLARED}`]
  test.each(PATHS.flatMap((path) => headers.map((header) => [path, header] as const)))(
    'E5 a 40 MiB body gets a readable 413 although all of it is sent (%s, %j)',
    async (path, header) => {
      await start({ errors: new ErrorSender(undefined, patient) })
      const { status, body } = await pushFortyMiB(path, header)
      expect(status).toBe(413)
      expect(JSON.parse(body).error.message).toBe('Request too large: the body may have at most 32 MiB')
      expect(front.jobs).toEqual([])
    },
  )

  test('E5 a declared 40 MiB body gets a readable 413 before it is read', async () => {
    await start()
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\n${DECLARED}\r\n\r\n`
    const answer = await readAnswer(openRaw(front.port, head))
    expect([answer.status, answer.headers['connection'], answer.headers['x-should-retry']]).toEqual([413, 'close', 'false'])
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'error', error: { type: 'request_too_large' } })
  })

  test('E5 fetch reads the 413 too', async () => {
    await start()
    const body = Buffer.alloc(40 * MIB, 'x')
    const answer = await fetch(`${front.base}/v1/messages`, { method: 'POST', headers: { authorization: `Bearer ${front.issue()}` }, body })
    expect(answer.status).toBe(413)
  })

  test('a client that asks with Expect and may continue gets one 100 Continue', async () => {
    await start()
    const body = JSON.stringify({ model: 'llama', messages: [{}] })
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\nexpect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`
    const socket = openRaw(front.port, head)
    const [interim] = (await once(socket, 'data')) as [Buffer]
    expect(interim.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    socket.write(body)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200/)
    socket.destroy()
  })
})

describe('early refusals on the wire', () => {
  const refused = (body: number): string => `POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: ${body}\r\n\r\n`

  test('a refusal leaves the connection usable when the body has come with it', async () => {
    await start()
    const socket = openRaw(front.port, `${refused(4)}body`)
    expect((await readAnswer(socket)).status).toBe(401)
    socket.removeAllListeners('data').write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    expect((await readAnswer(socket)).status).toBe(200)
    socket.destroy()
  })

  test('a client that goes on sending after its refusal is cut off after a while, not before it could read it', async () => {
    await start({ errors: new ErrorSender(undefined, new Lingering({ lingerMs: 50, maxSockets: 8 })) })
    const socket = openRaw(front.port, refused(1000))
    expect((await readAnswer(socket)).status).toBe(401)
    socket.removeAllListeners('close').on('error', () => undefined)
    await once(socket, 'close')
  })

  test('beyond the bound of lingering sockets they are destroyed at once', async () => {
    const lingering = new Lingering({ lingerMs: 60_000, maxSockets: 1 })
    await start({ errors: new ErrorSender(undefined, lingering) })
    const first = openRaw(front.port, refused(1000))
    await readAnswer(first)
    const second = openRaw(front.port, refused(1000))
    await readAnswer(second)
    second.removeAllListeners('close').on('error', () => undefined)
    await once(second, 'close')
    first.destroy()
  })
})

describe('bytes that are not a request', () => {
  test('bytes that are no HTTP answer 400 in the same JSON', async () => {
    await start()
    const answer = await readAnswer(openRaw(front.port, 'GET / HTTP/1.1\r\nbroken header line\r\n\r\n'))
    expect([answer.status, answer.headers['connection'], answer.headers['content-type']]).toEqual([400, 'close', 'application/json'])
    expect(answer.headers['request-id']).toBe(answer.headers['x-request-id'])
    expect(JSON.parse(answer.body).error).toEqual({
      message: 'Malformed HTTP request: its first line, a header or its body is not HTTP/1.1',
      type: 'invalid_request_error',
      param: null,
      code: null,
    })
  })

  test('headers that are too large answer 431, readable although the client goes on sending', async () => {
    const seen: string[] = []
    await start({ errors: new ErrorSender(({ row }) => seen.push(row.id)) })
    const socket = openRaw(front.port, `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-big: ${'x'.repeat(20_000)}`)
    socket.write('x'.repeat(200_000))
    const answer = await readAnswer(socket)
    expect(answer.status).toBe(431)
    expect(JSON.parse(answer.body)).toMatchObject({
      type: 'error',
      error: { message: 'Request headers too large: all headers together may have 16 KiB' },
    })
    expect(seen).toEqual(['headersTooLarge'])
  })

  test('a chunked body that breaks off into nonsense answers 400 in the dialect of its path', async () => {
    await start()
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\ntransfer-encoding: chunked\r\n\r\n`
    const socket = openRaw(front.port, head)
    socket.write('4\r\nbody\r\nnonsense\r\n')
    const answer = await readAnswer(socket)
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'error', error: { message: expect.stringMatching(/^Malformed HTTP request: /) } })
  })

  test('HTTP/2 without TLS is answered in HTTP/1.1, which names the reason', async () => {
    await start()
    const answer = await readAnswer(openRaw(front.port, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'))
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.body).error.message).toBe(
      'Malformed HTTP request: it is HTTP/2 without TLS, and this port speaks HTTP/1.1 alone',
    )
  })

  test('the limits that the messages name are those of the server', () => {
    expect(maxHeaderSize).toBe(16 * 1024)
    expect(SERVER_SETTINGS).toMatchObject({ headersTimeoutMs: 10_000, requestTimeoutMs: 60_000 })
  })

  test('a body that does not come in time answers 408, which clients repeat', async () => {
    await start({ server: { requestTimeoutMs: 100, headersTimeoutMs: 100, checkEveryMs: 20 } })
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\ncontent-length: 100\r\n\r\nhalf`
    const answer = await readAnswer(openRaw(front.port, head))
    expect([answer.status, answer.headers['connection'], answer.headers['x-should-retry']]).toEqual([408, 'close', undefined])
    expect(JSON.parse(answer.body)).toMatchObject({
      type: 'error',
      error: { type: 'timeout_error', message: expect.stringMatching(/^Request body timed out: /) },
    })
  })

  test('a client that leaves in the middle of its body is not a bug and reaches no backend', async () => {
    await start()
    const socket = openRaw(
      front.port,
      `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\ncontent-length: 100\r\n\r\nhalf`,
    )
    await expect.poll(() => front.started).toBe(1)
    socket.destroy()
    await expect.poll(() => front.finished).toHaveLength(1)
    expect(front.finished[0]?.error).toBeUndefined()
    expect(front.jobs).toEqual([])
  })
})
