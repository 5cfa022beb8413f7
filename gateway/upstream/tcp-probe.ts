import { connect, type LookupFunction } from 'node:net'
import type { Probe } from './backend-health.ts'

/** Options of the connection. */
export interface TcpProbeOptions {
  /** Guarded like the look-up of a request, because a probe must not reach an address that a request may not. */
  readonly lookup: (namespace: string) => LookupFunction
  readonly timeoutMs: number
}

/** Makes the Probe: it opens a TCP connection and closes it at once, without sending anything. */
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
