/**
 * Lets forms that are posted before sign-in begin one after another, and lets all other requests go first. SQLite answers in the same turn of the
 * event loop, so a thousand sign-ups that arrive together would otherwise be worked on in one go. Node accepts one connection in each turn: while
 * connections wait, a turn must be short, or a page waits until all connections before its own are accepted.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

/** The longest pause between two forms while requests keep arriving, ms. */
const MAX_PAUSE_MS = 20

/** @param now ms of a clock that never goes back */
export function inTurns(listener: RequestListener, now: () => number): RequestListener {
  const waiting: (readonly [IncomingMessage, ServerResponse])[] = []
  let hasArrival = false
  let begunAt = -MAX_PAUSE_MS
  const beginNext = (): void => {
    const isQuiet = !hasArrival || now() - begunAt >= MAX_PAUSE_MS
    hasArrival = false
    const next = isQuiet ? waiting.shift() : undefined
    if (waiting.length > 0) setImmediate(beginNext)
    if (next === undefined) return
    begunAt = now()
    if (!next[0].destroyed) listener(...next) // a browser that has left needs no answer
  }
  return (request, response) => {
    hasArrival = true
    if (!isForm(request)) return listener(request, response)
    waiting.push([request, response])
    if (waiting.length === 1) setImmediate(beginNext)
  }
}

function isForm({ method, url = '' }: IncomingMessage): boolean {
  return method === 'POST' && !url.startsWith('/api/')
}
