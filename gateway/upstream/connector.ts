/** Opens connections to backends: undici's way, with a timer of our own. */
import { Socket } from 'node:net'
import { buildConnector, errors } from 'undici'

/**
 * undici's own timer holds each socket until its next half-second tick by a WeakRef, which a minor garbage collection takes for a strong one.
 * A server that breaks its connections would have every request with all of its buffers promoted, and a full collection of 50 ms every two
 * seconds.
 * @param timeoutMs to the end of the handshake, the look-up of the name included
 */
export function connectorWithin(timeoutMs: number, options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector({ ...options, timeout: 0 })
  return (server, done) => {
    let timer: NodeJS.Timeout | undefined = undefined
    const given = (...result: Parameters<buildConnector.Callback>): void => {
      clearTimeout(timer)
      done(...result)
    }
    const socket: unknown = connect(server, given) // the types do not tell that it returns the socket
    timer = setTimeout(() => {
      if (socket instanceof Socket) socket.destroy(new errors.ConnectTimeoutError(`no connection within ${timeoutMs} ms`))
    }, timeoutMs)
  }
}
