/** Free ports for processes that take their port as a setting. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Below the ports that Linux gives to connections and to `listen(0)`, which would take a port before its process starts. */
const FIRST = 20_000
const END = 32_000

/** Ports that were free a moment ago. All are held at once, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const held = new Map<number, Server>()
  while (held.size < count) {
    const port = randomInt(FIRST, END)
    const server = await listeningAt(port)
    if (server !== undefined) held.set(port, server)
  }
  await Promise.all([...held.values()].map((server) => once(server.close(), 'close')))
  return [...held.keys()]
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

/** @returns undefined for a port that is taken */
async function listeningAt(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port)
  return await once(server, 'listening').then(
    () => server,
    () => undefined,
  )
}
