/** Reads along what passes through a server of a test: bodies of requests and of answers. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'

export interface Tapped {
  readonly path: string
  readonly authorization: string
  readonly asked: string
  readonly answered: string
}

/** @param onAnswered called at the end of each answer */
export function tapAnswers(server: Server, onAnswered: (tapped: Tapped) => void): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const [asked, answered]: [Buffer[], Buffer[]] = [[], []]
    const emit = request.emit.bind(request)
    request.emit = (name: string | symbol, ...args: unknown[]) => {
      if (name === 'data') asked.push(Buffer.from(args[0] as Buffer))
      return emit(name as 'data', ...(args as [Buffer]))
    }
    const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse
    response.end = ((...args: unknown[]) => {
      if (typeof args[0] === 'string' || args[0] instanceof Uint8Array) answered.push(Buffer.from(args[0] as string))
      return end(...args)
    }) as typeof response.end
    response.on('finish', () =>
      onAnswered({
        path: request.url ?? '',
        authorization: request.headers.authorization ?? '',
        asked: Buffer.concat(asked).toString(),
        answered: Buffer.concat(answered).toString(),
      }),
    )
  })
}
