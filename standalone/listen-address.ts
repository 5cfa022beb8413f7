/** The address on which the gateway listens, and the URL of the gateway. */
import type { Server } from 'node:http'
import { isIP } from 'node:net'
import { listenError, Misconfigured } from '#platform/lifecycle.ts'

/** Settings HOST and PORT. */
export interface ListenAddress {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
}

const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])
const NO_SUCH_ADDRESS: ReadonlySet<string | undefined> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAFNOSUPPORT', 'EINVAL'])

/** @returns the port. @throws Misconfigured if the address cannot be used, with the setting to change */
export async function listen(server: Server, { host, port }: ListenAddress): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const failed = (error: NodeJS.ErrnoException): void => reject(errorOf(error, host, port))
  server.once('error', failed)
  server.listen(port, host, resolve)
  await promise
  server.off('error', failed)
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

/** URL that reaches the gateway from this machine. All addresses include 127.0.0.1, which also works without IPv6. */
export function localURL(host: string, port: number): string {
  const name = WILDCARDS.has(host) ? '127.0.0.1' : host
  return `http://${isIP(name) === 6 ? `[${name}]` : name}:${port}`
}

/** @returns a warning if others can reach the gateway; undefined for a loopback address */
export function exposureWarning(host: string): string | undefined {
  if (host === 'localhost' || host === '::1' || host.startsWith('127.')) return undefined
  const who = WILDCARDS.has(host) ? 'every machine that reaches this one' : `every machine that reaches ${host}`
  return (
    `HOST=${host}: ${who} can call the gateway: with a key the models, without a key /metrics and /healthz. There is no TLS, so keys can be ` +
    'read on the way. Set HOST to 127.0.0.1 to keep Headgate to this machine.'
  )
}

function errorOf(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (!NO_SUCH_ADDRESS.has(error.code)) return listenError(error, 'PORT', port)
  return new Misconfigured(
    `HOST: ${JSON.stringify(host)} is not an address of this machine (${error.code ?? ''}); set HOST to 127.0.0.1, to 0.0.0.0 for all, or unset it`,
    { cause: error },
  )
}
