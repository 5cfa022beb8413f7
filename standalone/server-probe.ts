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
export type Connect = (host: string, port: number) => Promise<string | undefined>

/** What the probe needs. */
export interface ServerProbeDeps {
  readonly clock: Clock
  readonly connect: Connect
  /** Called when the answer for an address is first known, and when it changes. */
  readonly onChange: () => void
}

/** One address: `host:port`. */
interface Probed {
  /** undefined during the first try. */
  answer: { readonly failure: string | undefined } | undefined
  cancel: Cancel
}

/** Value of `failureOf` before the end of the first try. */
export const NOT_TRIED = 'it has not been tried yet'

/** Texts of error codes. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'the host name does not resolve (ENOTFOUND)',
}

const RETRY_MS = 2_000
const CONNECT_WITHIN_MS = 2_000
/** The rules of the gateway: a try must not reach an address that a request may not. */
const RULES = { allowLoopback: true }
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/** Tries every address of its URLs until the address answers. */
export class ServerProbe {
  readonly #deps: ServerProbeDeps
  readonly #probed = new Map<string, Probed>()
  #isStopped = false

  constructor(deps: ServerProbeDeps) {
    this.#deps = deps
  }

  /** Probes exactly the servers of these URLs from now on. */
  follow(urls: Iterable<string>): void {
    const wanted = new Map([...urls].flatMap((url) => addressesOf(url)))
    for (const [id, { cancel }] of this.#probed) {
      if (wanted.has(id)) continue
      cancel()
      this.#probed.delete(id)
    }
    for (const [id, { host, port }] of wanted) if (!this.#probed.has(id)) this.#begin(id, host, port)
  }

  /** @returns why no server answers there; undefined if one does; NOT_TRIED during the first try */
  failureOf(url: string): string | undefined {
    const [first] = addressesOf(url)
    if (first === undefined) return undefined
    const answer = this.#probed.get(first[0])?.answer
    return answer === undefined ? NOT_TRIED : answer.failure
  }

  stop(): void {
    this.#isStopped = true
    for (const { cancel } of this.#probed.values()) cancel()
  }

  #begin(id: string, host: string, port: number): void {
    const probed: Probed = { answer: undefined, cancel: () => undefined }
    this.#probed.set(id, probed)
    void this.#try(probed, host, port)
  }

  async #try(probed: Probed, host: string, port: number): Promise<void> {
    const failure = await this.#deps.connect(host, port)
    if (this.#isStopped) return
    const isNews = probed.answer === undefined || probed.answer.failure !== failure
    probed.answer = { failure }
    if (failure !== undefined) probed.cancel = this.#deps.clock.after(RETRY_MS, () => void this.#try(probed, host, port))
    if (isNews) this.#deps.onChange()
  }
}

/** Connects over TCP. */
export function connectByTcp(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const guarded = guardedLookup(RULES, (name, done) => lookup(name, { all: true }, done))
    const socket = connect({ host, port, timeout: CONNECT_WITHIN_MS, lookup: guarded })
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

function addressesOf(url: string): Array<[string, { readonly host: string; readonly port: number }]> {
  const checked = checkBackendUrl(url, RULES)
  if (!checked.ok) return [] // refused address
  const { hostname, port, protocol } = checked.url
  const host = hostname.replace(/^\[|\]$/g, '')
  const number = port === '' ? PORTS[protocol] : Number(port)
  return number === undefined ? [] : [[`${host}:${number}`, { host, port: number }]]
}
