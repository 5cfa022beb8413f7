/** The gateways of these tests run in containers, so the streams of Messages are checked where they are read. */
import { isMessageStream, MessageCheck } from '../support/message-grammar.ts'

/** @returns `fetch` whose streams of Messages fail at the first wrong event */
export function checkedFetch(original: typeof fetch): typeof fetch {
  return async (input, init) => {
    const answer = await original(input, init)
    const isStream = isMessageStream(new URL(answer.url).pathname, answer.headers.get('content-type'))
    return isStream && answer.body !== null ? new Response(answer.body.pipeThrough(checking()), answer) : answer
  }
}

function checking(): TransformStream<Uint8Array, Uint8Array> {
  const check = new MessageCheck()
  return new TransformStream({
    transform(bytes, controller) {
      check.push(Buffer.from(bytes))
      controller.enqueue(bytes)
    },
    flush: () => void check.end(),
  })
}
