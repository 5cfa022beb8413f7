/**
 * Checks whether the servers of `url` backends accept connections. Gateways notice failures only from requests, but here a person waits
 * for the printed state. A server that answers is not tried again: from then on the gateway reports failed requests.
 */
import { lookup } from 'node:dns'
import { connect } from 'node:net'
import type { Cancel, Clock } from '#platform/clock.ts'
import { checkBackendUrl } from '#contract/values/backend-address.ts'
import { guardedLookup } from '../gateway/upstream/url-guard.ts'

/** Opens a connection and closes it. @returns undefined if it was opened, otherwise the reason */
export type Connect = (url: string) => Promise<string | undefined>

/** What the probe needs. */
export interface ServerProbeDeps {
  readonly clock: Clock
  readonly connect?: Connect
  /** Called when the answer for a URL is first known, and when it changes. */
  readonly onChange: () => void
}

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
/** Texts of error codes. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'the host name does not resolve (ENOTFOUND)',
}

/** Tries every URL until its server answers. */
export class ServerProbe {
  readonly #deps: ServerProbeDeps
  readonly #probed = new Map<string, Probed>()

  constructor(deps: ServerProbeDeps) {
    this.#deps = deps
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

  stop(): void {
    this.follow([])
  }

  async #try(url: string, probed: Probed): Promise<void> {
    const { connect: open = connectByTcp, clock, onChange } = this.#deps
    const failure = await open(url)
    if (this.#probed.get(url) !== probed) return
    const isNews = probed.failure !== failure
    probed.failure = failure
    if (failure !== undefined) probed.cancel = clock.after(RETRY_MS, () => void this.#try(url, probed))
    if (isNews) onChange()
  }
}

/** Connects over TCP. An address that requests may not reach counts as answered: its condition explains it. */
export function connectByTcp(url: string): Promise<string | undefined> {
  const checked = checkBackendUrl(url, RULES)
  if (!checked.ok) return Promise.resolve(undefined)
  const { hostname, port, protocol } = checked.url
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    const guarded = guardedLookup(RULES, (name, done) => lookup(name, { all: true }, done))
    const number = Number(port) || (protocol === 'https:' ? 443 : 80)
    const socket = connect({ host, port: number, timeout: CONNECT_WITHIN_MS, lookup: guarded })
    const done = (failure: string | undefined): void => {
      socket.destroy()
      resolve(failure)
    }
    socket.unref()
    socket.once('connect', () => done(undefined))
    socket.once('timeout', () => done('it accepts no connection within 2 s'))
    socket.once('error', (error: NodeJS.ErrnoException) => done(WORDS[error.code ?? ''] ?? error.code ?? error.message))
  })
}
