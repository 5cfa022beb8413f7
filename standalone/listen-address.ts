/** The address on which the gateway listens, and the URL of the gateway. */
import type { Server } from 'node:http'
import { isIP } from 'node:net'
import { listen, Misconfigured } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'

const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])
const NO_SUCH_ADDRESS: ReadonlySet<string | undefined> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAFNOSUPPORT', 'EINVAL'])

/**
 * Listens, and warns if others can reach the gateway.
 * @param port 0: any free port
 * @returns a URL that reaches the gateway from this machine
 * @throws Misconfigured if the address cannot be used, with the setting to change
 */
export async function listenOn(server: Server, host: string, port: number, log: Pick<Log, 'warn'>): Promise<string> {
  const taken = await listen(server, 'PORT', { port, host }).catch((error: NodeJS.ErrnoException) => {
    throw errorOf(error, host)
  })
  if (!isLoopback(host)) log.warn(exposure(host))
  const name = WILDCARDS.has(host) ? '127.0.0.1' : host // all addresses include it, and it also works without IPv6
  return `http://${isIP(name) === 6 ? `[${name}]` : name}:${taken}`
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

function exposure(host: string): string {
  const who = WILDCARDS.has(host) ? 'every machine that reaches this one' : `every machine that reaches ${host}`
  return (
    `HOST=${host}: ${who} can call the gateway: with a key the models, without a key /metrics and /healthz. There is no TLS, so keys can be ` +
    'read on the way. Set HOST to 127.0.0.1 to keep Headgate to this machine.'
  )
}

function errorOf(error: NodeJS.ErrnoException, host: string): Error {
  if (!NO_SUCH_ADDRESS.has(error.code)) return error
  return new Misconfigured(
    `HOST: ${JSON.stringify(host)} is not an address of this machine (${error.code ?? ''}); set HOST to 127.0.0.1, to 0.0.0.0 for all, or unset it`,
    { cause: error },
  )
}
