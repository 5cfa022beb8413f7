import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

/** Starts a server on a port that the kernel chooses. @returns the port */
export async function listening(server: Server, host = '127.0.0.1'): Promise<number> {
  await once(server.listen(0, host), 'listening')
  return (server.address() as AddressInfo).port // listening on TCP, so it is not a pipe name
}
