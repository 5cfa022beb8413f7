/**
 * Proxies between an operator and the Kubernetes API and Redis that kill the operator at a chosen write: before the write is
 * applied, or after the write but before its answer.
 */
import { readFileSync } from 'node:fs'
import { type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, request as tlsRequest } from 'node:https'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { redisFunctions } from '#contract/redis/redis-functions.ts'
import type { ControlPlane } from './control-plane.ts'
import { listening } from './listening.ts'
import { PrivateCa } from './private-ca.ts'

/** When to kill: at the n-th write from now, counted from 0. */
export interface KillAt {
  readonly write: number
  readonly when: 'before' | 'after'
}

export class WriteGate {
  readonly seen: string[] = []
  #armed: KillAt | undefined
  #kill: (() => Promise<unknown>) | undefined
  #hasKilled = false

  /** Counts from the next write. @param kill sends SIGKILL */
  arm(at: KillAt, kill: () => Promise<unknown>): void {
    this.seen.length = 0
    this.#armed = at
    this.#kill = kill
    this.#hasKilled = false
  }

  disarm(): void {
    this.#armed = undefined
    this.#kill = undefined
  }

  get hasKilled(): boolean {
    return this.#hasKilled
  }

  verdictOn(write: string): 'pass' | 'before' | 'after' {
    const index = this.seen.push(write) - 1
    return this.#armed?.write === index ? this.#armed.when : 'pass'
  }

  /** Kills once, however often the held connection reports. */
  async pull(): Promise<void> {
    const kill = this.#kill
    this.disarm()
    if (!kill) return
    this.#hasKilled = true
    await kill()
  }
}

export interface CrashProxy {
  readonly url: string
  close(): void
}

/** In front of the API server. All calls except reads are writes. Writes of the Lease do not count, since they never stop. */
export async function kubeCrashProxy(plane: ControlPlane, gate: WriteGate): Promise<CrashProxy> {
  const { key, cert, ca } = await certificate(plane)
  const server = createTlsServer({ key, cert }, (incoming, outgoing) => {
    const isWrite = incoming.method !== 'GET' && !(incoming.url ?? '').includes('/leases')
    const verdict = isWrite ? gate.verdictOn(`${incoming.method} ${(incoming.url ?? '').replace(/\?.*/, '')}`) : 'pass'
    if (verdict === 'before') return void gate.pull()
    forward(incoming, outgoing, { plane, ca }, (answer) => {
      if (verdict === 'after') answer.resume().once('end', () => void gate.pull())
      else pass(answer, outgoing)
    })
  })
  return { url: `https://${plane.address.ip}:${await listening(server, plane.address.ip)}`, close: () => closeAll(server) }
}

/** In front of Redis. Writes are the functions that change the projection or the spend of an account. */
export async function redisCrashProxy(ip: string, port: number, gate: WriteGate): Promise<CrashProxy> {
  const { write, switch: switch_ } = redisFunctions('hg')
  const { merge, raise } = ledgerFunctions('hg')
  const marks = [write, switch_, merge, raise].map((name) => `\r\n${name}\r\n`) // not the text of the library, which defines the functions
  const server = createServer((client) => {
    const upstream = connect(port, ip)
    let held = false
    client.on('data', (chunk: Buffer) => {
      const verdict = marks.some((mark) => chunk.includes(mark)) ? gate.verdictOn('Redis function') : 'pass'
      if (verdict === 'before') return void gate.pull()
      held ||= verdict === 'after'
      upstream.write(chunk)
    })
    upstream.on('data', (chunk: Buffer) => (held ? void gate.pull() : client.write(chunk)))
    endTogether(client, upstream)
  })
  return { url: `redis://${ip}:${await listening(server, ip)}`, close: () => server.close() }
}

function pass(answer: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
  outgoing.flushHeaders() // a watch answers long before its first event
  answer.pipe(outgoing)
}

/** Sends a request to the API server; `onAnswer` passes the answer on. */
export function forward(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { plane, ca }: { plane: ControlPlane; ca: Buffer },
  onAnswer: (answer: IncomingMessage) => void,
): void {
  const { ip: host, port } = plane.address
  const { url: path, method, headers } = incoming
  const call = tlsRequest({ host, port, path, method, headers, ca }, onAnswer)
  call.on('error', () => outgoing.destroy())
  outgoing.on('close', () => call.destroy())
  incoming.pipe(call)
}

/** A server certificate of the control plane's own CA, so that the operator checks the proxy as it would the API server. */
export async function certificate({ address: { folder, ip } }: ControlPlane): Promise<{ key: Buffer; cert: Buffer; ca: Buffer }> {
  const ca = new PrivateCa(join(folder, 'pki'))
  return { ...(await ca.certify(`IP:${ip}`)), ca: readFileSync(ca.file) }
}

export function closeAll(server: Server & { closeAllConnections?(): void }): void {
  server.closeAllConnections?.()
  server.close()
}

function endTogether(a: Socket, b: Socket): void {
  for (const [one, other] of [[a, b] as const, [b, a] as const]) {
    one.on('error', () => other.destroy())
    one.on('close', () => other.destroy())
  }
}
