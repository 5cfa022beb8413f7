/**
 * Checks whether the servers of `url` backends accept connections. Gateways notice failures only from requests, but here a person waits
 * for the printed state. A server that answers is not tried again: from then on the gateway reports failed requests.
 */
import { lookup } from 'node:dns'
import type { Cancel, Clock } from '#platform/clock.ts'
import { checkBackendUrl } from '#contract/values/backend-address.ts'
import { connectionError, EndpointHealth } from '../gateway/upstream/backend-health.ts'
import { guardedLookup } from '../gateway/upstream/name-lookup.ts'

interface Probed {
  failure: string | undefined
  cancel: Cancel
}

/** Value of `failureOf` before the end of the first try. */
export const NOT_TRIED = 'it has not been tried yet'

const RETRY_MS = 2_000
const CONNECT_WITHIN_MS = 2_000
/** The rules of the gateway: a try must not reach an address that a request may not. */
const RULES = { allowLoopback: true }
const LOOKUP = guardedLookup(RULES, (name, done) => lookup(name, { all: true }, done))
/** Texts of error codes. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'the host name does not resolve (ENOTFOUND)',
}

/** Tries every URL until its server answers. */
export class ServerProbe {
  readonly #clock: Clock
  readonly #onChange: () => void
  readonly #failureAt: typeof connectionFailure
  readonly #probed = new Map<string, Probed>()

  /** @param onChange called when the answer for a URL is first known, and when it changes */
  constructor(clock: Clock, onChange: () => void, failureAt = connectionFailure) {
    this.#clock = clock
    this.#onChange = onChange
    this.#failureAt = failureAt
  }

  /** Probes exactly these URLs from now on. */
  follow(urls: Iterable<string>): void {
    const wanted = new Set(urls)
    for (const [url, { cancel }] of this.#probed) {
      if (wanted.has(url)) continue
      cancel()
      this.#probed.delete(url)
    }
    for (const url of wanted) {
      if (this.#probed.has(url)) continue
      const probed = { failure: NOT_TRIED, cancel: () => undefined }
      this.#probed.set(url, probed)
      void this.#try(url, probed)
    }
  }

  /** @returns why no server answers there; undefined if one does; NOT_TRIED during the first try */
  failureOf(url: string): string | undefined {
    return this.#probed.get(url)?.failure
  }

  async #try(url: string, probed: Probed): Promise<void> {
    const failure = await this.#failureAt(url)
    if (this.#probed.get(url) !== probed) return
    const isNews = probed.failure !== failure
    probed.failure = failure
    if (failure !== undefined) probed.cancel = this.#clock.after(RETRY_MS, () => void this.#try(url, probed))
    if (isNews) this.#onChange()
  }
}

/**
 * Tries a server once. An address that requests may not reach counts as answered: its condition explains it.
 * @returns the reason if the connection could not be opened
 */
export async function connectionFailure(url: string): Promise<string | undefined> {
  const checked = checkBackendUrl(url, RULES)
  if (!checked.ok) return undefined
  const { host, port } = new EndpointHealth(checked.url.origin, '')
  const error = await connectionError({ host, port, lookup: LOOKUP, timeout: CONNECT_WITHIN_MS })
  if (error === undefined) return undefined
  return error === 'timeout' ? 'it accepts no connection within 2 s' : (WORDS[error.code ?? ''] ?? (error.code || error.message))
}
