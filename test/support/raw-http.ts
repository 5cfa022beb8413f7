/** HTTP over a plain socket, for requests that well-behaved clients do not send. */
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** All bytes of the answer's head, interim answers included. */
  readonly head: string
}

/** Opens a connection and sends bytes; the socket's errors are the caller's to see in `readAnswer`. */
export function openRaw(port: number, bytes: string | Buffer): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  return socket
}

/** Reads one answer with a Content-Length. @throws when the connection ends or breaks before it is whole */
export function readAnswer(socket: Socket): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    let seen = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      seen = Buffer.concat([seen, chunk])
      const answer = parse(seen.toString('utf8'))
      if (answer) resolve(answer)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`closed after: ${seen.toString('utf8')}`)))
  })
}

function parse(text: string): RawAnswer | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = text.slice(0, end)
  const [line = '', ...fields] = head.split('\r\n')
  const headers: Record<string, string> = {}
  for (const field of fields) headers[field.slice(0, field.indexOf(':')).toLowerCase()] = field.slice(field.indexOf(':') + 1).trim()
  const body = text.slice(end + 4)
  if (Buffer.byteLength(body) < Number(headers['content-length'] ?? 0)) return undefined
  return { status: Number(line.split(' ')[1]), headers, body, head }
}
