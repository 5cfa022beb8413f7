/** A model server that answers each request with the random answer of the number in it, on a bare socket. */
import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { listening } from './listening.ts'
import type { RandomAnswer } from './random-answers.ts'

const HEAD_END = '\r\n\r\n'
const LENGTH = /\r\ncontent-length: (\d+)/i

export class RandomBackend {
  received = 0
  /** Requests that no gateway should send: not in one piece, not JSON, or another path. */
  readonly odd: string[] = []
  readonly #answerFor: (body: string) => RandomAnswer
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(answerFor: (body: string) => RandomAnswer) {
    this.#answerFor = answerFor
    this.#server = createServer((socket) => this.#serve(socket))
  }

  listen(): Promise<number> {
    return listening(this.#server, '0.0.0.0')
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #serve(socket: Socket): void {
    let unread = ''
    this.#sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket))
    socket.setEncoding('latin1').on('data', (part: string) => {
      unread += part
      const headEnd = unread.indexOf(HEAD_END)
      if (headEnd < 0) return
      const end = headEnd + HEAD_END.length + Number(LENGTH.exec(unread.slice(0, headEnd))?.[1] ?? 0)
      if (unread.length < end) return
      const request = unread.slice(0, end)
      unread = unread.slice(end)
      if (unread !== '') this.odd.push(`more than one request at once: ${unread.slice(0, 80)}`)
      this.#received(request, headEnd + HEAD_END.length, socket)
    })
  }

  #received(request: string, bodyAt: number, socket: Socket): void {
    this.received += 1
    if (!/^POST \/v1\/(chat\/completions|messages) HTTP\/1\.1\r\n/.test(request)) this.odd.push(request.slice(0, 80))
    void send(socket, this.#answerFor(request.slice(bodyAt)))
  }
}

async function send(socket: Socket, { pieces, end }: RandomAnswer): Promise<void> {
  for (const piece of pieces) {
    if (socket.destroyed) return
    socket.write(piece)
    if (pieces.length > 1) await nextTurn()
  }
  if (end === 'close') socket.end()
  if (end === 'reset') socket.resetAndDestroy()
}
