/**
 * Every stream of Messages that a test reads by `fetch`, and so by an SDK, is checked by the grammar. `checked-streams-setup.ts` installs the
 * check for the layers that have gateways; programs outside the test process install it themselves.
 */
import { checkMessageStart, checkMessageStream } from './message-grammar.ts'

/** How a stream ended for its client. */
type End = 'whole' | 'broken'

const PATH = /\/v1\/messages$/
const faults: string[] = []

/** Faults since the last call. */
export function takeFaults(): string[] {
  return faults.splice(0)
}

export function isMessageStream(path: string, contentType: string | null | undefined): boolean {
  return PATH.test(path) && contentType?.startsWith('text/event-stream') === true
}

type Fetch = typeof fetch

/** @returns `fetch` with the check */
export function checkedFetch(original: Fetch): Fetch {
  return async (input, init) => {
    const answer = await original(input, init)
    const isStream = URL.canParse(answer.url) && isMessageStream(new URL(answer.url).pathname, answer.headers.get('content-type'))
    return isStream && answer.body !== null ? noted(answer, answer.body) : answer
  }
}

/** @returns the same answer, whose body is checked at its end */
function noted(answer: Response, body: ReadableStream<Uint8Array>): Response {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const note = (end: End): void => {
    try {
      if (end === 'whole') checkMessageStream(text + decoder.decode())
      else checkMessageStart(text)
    } catch (error) {
      faults.push(`${String(error)} in the stream\n${text}`)
    }
  }
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await reader.read()
          if (value) {
            text += decoder.decode(value, { stream: true })
            return controller.enqueue(value)
          }
          if (done) note('whole')
          controller.close()
        } catch (error) {
          note('broken')
          controller.error(error)
        }
      },
      async cancel(reason) {
        note('broken')
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  const { status, statusText, headers, url } = answer
  return Object.defineProperty(new Response(stream, { status, statusText, headers }), 'url', { value: url })
}
