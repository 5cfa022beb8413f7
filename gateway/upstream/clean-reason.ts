import { isIP } from 'node:net'

/** Names of the model for the client and for the backend. */
export interface Names {
  readonly askedName: string
  readonly upstreamModel: string
}

const MAX_BYTES = 2048
/** Characters that are read. Every pattern below is bounded, so no text of a backend can block the process. */
const MAX_CHARACTERS = 4 * MAX_BYTES
const TAG = /<\/?[a-z!][^<>]{0,500}>/gi
const URL_LIKE = /\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"'<>)\]]+/gi
/** Characters of which addresses consist. */
const WORD = /[[\]A-Za-z0-9.:-]+/g
const ADDRESS_WITH_PORT = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::\d+)?$/i
const NAME_WITH_PORT = /^(?:localhost|(?=.*[a-z])[a-z0-9-]+\.[a-z0-9.-]+):\d{2,5}$/i
const CLUSTER_NAME = /\.(?:svc|local|internal|localdomain)(?:[.:]|$)/i

/**
 * Cleans a backend's text for clients: no tags, hosts or addresses, the requested model name instead of the backend's, at most 2 KiB.
 * @returns undefined if nothing is left
 */
export function cleanReason(text: string, { askedName, upstreamModel }: Names): string | undefined {
  const start = text.slice(0, MAX_CHARACTERS)
  const named = upstreamModel === askedName || upstreamModel.length < 3 ? start : start.replaceAll(upstreamModel, () => askedName)
  const clean = named.replace(TAG, ' ').replace(URL_LIKE, '[host]').replace(WORD, withoutHost).replace(/\s+/g, ' ').trim()
  return clean === '' ? undefined : shortened(clean)
}

function withoutHost(word: string): string {
  const core = word.replace(/[.:]$/, '') // the end of a sentence
  return isHost(core) ? `[host]${word.slice(core.length)}` : word
}

function isHost(word: string): boolean {
  if (word === '[host]') return false
  const [, bracketed, dotted] = ADDRESS_WITH_PORT.exec(word) ?? []
  return isIP(bracketed ?? dotted ?? word) !== 0 || NAME_WITH_PORT.test(word) || CLUSTER_NAME.test(word)
}

function shortened(text: string): string {
  const bytes = Buffer.from(text)
  return bytes.length <= MAX_BYTES
    ? text
    : bytes
        .subarray(0, MAX_BYTES)
        .toString('utf8')
        .replace(/\uFFFD+$/, '')
}
