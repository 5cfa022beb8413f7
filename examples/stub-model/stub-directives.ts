/**
 * Directives with which a test or a user controls the stub model: `stub:` and a list such as `status=503,retry-after=2`, in the header
 * `x-session-id` (which the gateway forwards), otherwise at the end of the model name, otherwise in the last message.
 */
import { z } from 'zod'

const count = z.coerce.number().int().nonnegative()

const directives = z.object({
  status: count.min(100).max(599).optional(),
  /** ms before the first byte. */
  delay: count.default(0),
  /** ms between two pieces of a stream. */
  gap: count.default(0),
  /** Words of the answer; default: an echo of the last message. */
  words: count.max(1_000_000).optional(),
  /** Seconds, sent as Retry-After. */
  'retry-after': count.optional(),
  /** The connection breaks after this many pieces of a stream, or in the middle of a plain body. */
  cut: count.optional(),
  /** Falls silent after this many pieces and never ends. */
  hang: count.optional(),
  /** No usage is reported, as some old servers do. */
  nousage: count.optional(),
})

/** The directives of one request. Times in ms. */
export type StubDirectives = z.infer<typeof directives>

const MARK = /stub:([a-z][a-z0-9=,-]*)/

/** Reads the first text with directives. @returns the defaults without directives, and for unreadable ones */
export function parseStubDirectives(texts: readonly (string | undefined)[]): StubDirectives {
  const found = texts.map((text) => MARK.exec(text ?? '')?.[1]).find((list) => list !== undefined)
  const pairs = (found ?? '').split(',').map((pair) => {
    const [name = '', value = '1'] = pair.split('=')
    return [name, value]
  })
  const parsed = directives.safeParse(Object.fromEntries(pairs))
  return parsed.success ? parsed.data : directives.parse({})
}
