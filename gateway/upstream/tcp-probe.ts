import { connect, type LookupFunction } from 'node:net'
import type { Probe } from './backend-health.ts'

/** How to connect. */
export interface TcpProbeOptions {
  /** Guarded like that of a request: a probe must not reach what a request may not. */
  readonly lookup: (namespace: string) => LookupFunction
  readonly timeoutMs: number
}

/** Makes the Probe that opens a TCP connection and closes it at once; nothing is sent. */
export function tcpProbe({ lookup, timeoutMs }: TcpProbeOptions): Probe {
  return ({ host, port, namespace }) =>
    new Promise((resolve) => {
      const socket = connect({ host, port, lookup: lookup(namespace), timeout: timeoutMs })
      const done = (isOpen: boolean): void => {
        socket.destroy()
        resolve(isOpen)
      }
      socket.unref()
      socket.once('connect', () => done(true))
      socket.once('timeout', () => done(false))
      socket.once('error', () => done(false))
    })
}
