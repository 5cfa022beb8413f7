import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { request as httpRequest, Agent } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { startFront, type FrontGateway, type FrontOptions } from '../../test/support/front-gateway.ts'
import { openRaw, readAnswer } from '../../test/support/raw-http.ts'
import { Lingering } from './lingering.ts'
import { ErrorSender } from './send-error.ts'

const MIB = 2 ** 20
const PATHS = ['/v1/chat/completions', '/v1/messages'] as const
let front: FrontGateway

async function start(options: FrontOptions = {}): Promise<void> {
  front = await startFront(options)
}

afterEach(() => front.stop())

/** Sends 40 MiB with a client that pushes on, and returns the answer it could read. */
async function pushFortyMiB(
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number | undefined; text: string; sent: number }> {
  const client = httpRequest(`${front.base}${path}`, { method: 'POST', agent: new Agent(), headers })
  const piece = Buffer.alloc(MIB, 'x')
  const answered = once(client, 'response')
  let sent = 0
  for (; sent < 40; sent++) {
    if (!client.write(piece)) await Promise.race([once(client, 'drain'), wait(5_000, undefined, { ref: false })])
  }
  client.end()
  const [response] = await answered
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, text, sent }
}

describe('a body that is too large', () => {
  test.each(PATHS)('E5 a 40 MiB body gets a readable 413 before it is read (%s)', async (path) => {
    await start()
    const { status, text, sent } = await pushFortyMiB(path, {
      authorization: `Bearer ${front.issue()}`,
      'content-length': String(40 * MIB),
    })
    expect([status, sent]).toEqual([413, 40])
    expect(JSON.parse(text).error.message).toBe('Request too large: the body may have at most 32 MiB')
    expect(front.jobs).toEqual([])
  })

  test('E5 a declared 40 MiB body is answered while none of it has been sent', async () => {
    await start()
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\ncontent-length: ${40 * MIB}\r\n\r\n`
    const answer = await readAnswer(openRaw(front.port, head))
    expect([answer.status, answer.headers['connection'], answer.headers['x-should-retry']]).toEqual([413, 'close', 'false'])
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'error', error: { type: 'request_too_large' } })
  })

  test.each(PATHS)('E5 a chunked 40 MiB body gets a readable 413 as soon as it is over the limit (%s)', async (path) => {
    await start()
    const { status, sent } = await pushFortyMiB(path, { authorization: `Bearer ${front.issue()}` })
    expect([status, sent]).toEqual([413, 40])
  })

  test('E5 a client that asks with Expect is answered without being told to go on', async () => {
    await start()
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\nexpect: 100-continue\r\ncontent-length: ${40 * MIB}\r\n\r\n`
    const answer = await readAnswer(openRaw(front.port, head))
    expect(answer.head).toMatch(/^HTTP\/1\.1 413/)
  })

  test('E5 a client that asks with Expect and sends its 40 MiB without waiting can read the 413 too', async () => {
    await start()
    const { status } = await pushFortyMiB('/v1/messages', {
      authorization: `Bearer ${front.issue()}`,
      expect: '100-continue',
      'content-length': String(40 * MIB),
    })
    expect(status).toBe(413)
  })

  test('a client that asks with Expect and may go on is told so once', async () => {
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
    await start({ errors: new ErrorSender({ lingering: new Lingering({ lingerMs: 50, maxSockets: 8 }) }) })
    const socket = openRaw(front.port, refused(1000))
    expect((await readAnswer(socket)).status).toBe(401)
    socket.removeAllListeners('close').on('error', () => undefined)
    await once(socket, 'close')
  })

  test('beyond the bound of lingering sockets they are destroyed at once', async () => {
    const lingering = new Lingering({ lingerMs: 60_000, maxSockets: 1 })
    await start({ errors: new ErrorSender({ lingering }) })
    const first = openRaw(front.port, refused(1000))
    await readAnswer(first)
    const second = openRaw(front.port, refused(1000))
    await readAnswer(second)
    second.removeAllListeners('close').on('error', () => undefined)
    await once(second, 'close')
    first.destroy()
  })
})

describe('what is no request', () => {
  test('bytes that are no HTTP answer 400 in the same JSON', async () => {
    await start()
    const answer = await readAnswer(openRaw(front.port, 'GET / HTTP/1.1\r\nbroken header line\r\n\r\n'))
    expect([answer.status, answer.headers['connection'], answer.headers['content-type']]).toEqual([400, 'close', 'application/json'])
    expect(answer.headers['request-id']).toBe(answer.headers['x-request-id'])
    expect(JSON.parse(answer.body).error).toEqual({
      message: 'Malformed HTTP request',
      type: 'invalid_request_error',
      param: null,
      code: null,
    })
  })

  test('headers that are too large answer 431, readable although the client goes on sending', async () => {
    const seen: string[] = []
    await start({ errors: new ErrorSender({ onUnread: ({ row }) => seen.push(row.id) }) })
    const socket = openRaw(front.port, `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-big: ${'x'.repeat(20_000)}`)
    socket.write('x'.repeat(200_000))
    const answer = await readAnswer(socket)
    expect(answer.status).toBe(431)
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'error', error: { message: 'Request headers too large' } })
    expect(seen).toEqual(['headersTooLarge'])
  })

  test('a chunked body that breaks off into nonsense answers 400 in the dialect of its path', async () => {
    await start()
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\ntransfer-encoding: chunked\r\n\r\n`
    const socket = openRaw(front.port, head)
    socket.write('4\r\nbody\r\nnonsense\r\n')
    const answer = await readAnswer(socket)
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'error', error: { message: 'Malformed HTTP request' } })
  })

  test('a body that does not come in time answers 408, which clients repeat', async () => {
    await start({ server: { requestTimeoutMs: 100, headersTimeoutMs: 100, checkEveryMs: 20 } })
    const head = `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\ncontent-length: 100\r\n\r\nhalf`
    const answer = await readAnswer(openRaw(front.port, head))
    expect([answer.status, answer.headers['connection'], answer.headers['x-should-retry']]).toEqual([408, 'close', undefined])
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'error', error: { type: 'timeout_error', message: 'Request body timed out' } })
  })

  test('a client that leaves in the middle of its body is no bug and reaches no backend', async () => {
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
