/**
 * A model server that streams the same 64 events to every client, 20 ms apart, each in a write of its own. `GET /events` answers with the number
 * of events that the server has written so far, in all.
 *
 *   node stream-mock.ts IP PORT
 */
import { createServer, type ServerResponse } from 'node:http'

const EVENTS = 64
const GAP_MS = 20
const [ip = '127.0.0.1', port = '0'] = process.argv.slice(2)
const base = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'bench-stream' }
const event = (delta: object, finish: string | null): Buffer =>
  Buffer.from(`data: ${JSON.stringify({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`)
const words = Array.from({ length: EVENTS - 2 }, (_, i) => event({ content: ` word ${i}` }, null))
const events: readonly Buffer[] = [...words, event({}, 'stop'), Buffer.from('data: [DONE]\n\n')]
let written = 0

function stream(response: ServerResponse): void {
  let next = 0
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  const step = (): void => {
    const bytes = events[next++]
    if (bytes !== undefined && !response.destroyed) {
      response.write(bytes)
      written += 1
    }
    if (next < events.length && !response.destroyed) return
    clearInterval(timer)
    response.end()
  }
  const timer = setInterval(step, GAP_MS)
}

createServer({ keepAliveTimeout: 75_000, noDelay: true }, (request, response) => {
  request.resume()
  if (request.method === 'GET') response.end(String(written))
  // starts at a random moment of the gap: otherwise all streams of a load would send at the same time
  else request.once('end', () => setTimeout(() => stream(response), Math.random() * GAP_MS))
}).listen(Number(port), ip)
