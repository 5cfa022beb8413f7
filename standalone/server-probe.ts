/**
 * Whether the servers of `url` backends accept connections. Gateways learn that from requests only; here a person reads what is printed
 * and waits for it. A server that answers is not asked again: from then on the gateway reports how its requests fare.
 */
import { lookup } from 'node:dns'
import { connect } from 'node:net'
import type { Cancel, Clock } from '../gateway/process/clock.ts'
import { checkBackendUrl } from '../gateway/shared/backend-address.ts'
import { guardedLookup } from '../gateway/upstream/url-guard.ts'

/** Opens a connection and closes it. @returns undefined when it came about, else why not */
export type Connect = (host: string, port: number) => Promise<string | undefined>

/** What it needs. */
export interface ServerProbeDeps {
  readonly clock: Clock
  readonly connect: Connect
  /** The answer for an address is known, or has changed. */
  readonly onChange: () => void
}

/** One address: `host:port`. */
interface Probed {
  /** undefined while the first try is under way. */
  answer: { readonly failure: string | undefined } | undefined
  cancel: Cancel
}

/** Stands for a failure that is not known yet. */
export const NOT_TRIED = 'it has not been tried yet'

/** Codes in words. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'the host name does not resolve (ENOTFOUND)',
}

const RETRY_MS = 2_000
const CONNECT_WITHIN_MS = 2_000
/** Those of the gateway: a try must not reach what a request may not. */
const RULES = { allowLoopback: true }
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/** Tries every address that it is asked about until that address answers. */
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

  /** @returns why nobody answers there; undefined when somebody does; NOT_TRIED while the first try is under way */
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

/** The Connect of a real network. */
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
    socket.once('timeout', () => done('it takes no connection within 2 s'))
    socket.once('error', (error: NodeJS.ErrnoException) => done(WORDS[error.code ?? ''] ?? error.code ?? error.message))
  })
}

function addressesOf(url: string): Array<[string, { readonly host: string; readonly port: number }]> {
  const checked = checkBackendUrl(url, RULES)
  if (!checked.ok) return [] // nobody may call it
  const { hostname, port, protocol } = checked.url
  const host = hostname.replace(/^\[|\]$/g, '')
  const number = port === '' ? PORTS[protocol] : Number(port)
  return number === undefined ? [] : [[`${host}:${number}`, { host, port: number }]]
}
