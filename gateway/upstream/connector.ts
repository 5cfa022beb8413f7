/** Opens connections to backends as undici does, but with its own timer. */
import { Socket } from 'node:net'
import { buildConnector, errors } from 'undici'

/**
 * Makes a connector. undici's timer refers to each socket by a WeakRef until its next half-second tick, and a minor garbage collection
 * treats the WeakRef as a strong reference. If a server breaks its connections, every request with all of its buffers would be promoted,
 * and a full collection would take 50 ms every two seconds.
 * @param timeoutMs to the end of the handshake, including the look-up of the name
 */
export function connectorWithin(timeoutMs: number, options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector({ ...options, timeout: 0 })
  return (server, done) => {
    let timer: NodeJS.Timeout | undefined = undefined
    const given = (...result: Parameters<buildConnector.Callback>): void => {
      clearTimeout(timer)
      done(...result)
    }
    const socket: unknown = connect(server, given) // the types omit that it returns the socket
    timer = setTimeout(() => {
      if (socket instanceof Socket) socket.destroy(new errors.ConnectTimeoutError(`no connection within ${timeoutMs} ms`))
    }, timeoutMs)
  }
}
