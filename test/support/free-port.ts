/** Free ports for processes that take their port as a setting. */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

/** Ports that were free a moment ago. All are held at once, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as AddressInfo).port) // a TCP server, so no string
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}
