/** Free ports for processes that take their port as a setting. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Below the ports that Linux gives to connections and to `listen(0)`, which would take a port before its process starts. */
const FIRST = 20_000
const END = 32_000
/**
 * Workers of vitest run at the same time, and a port is free for seconds before its program listens, and while the program restarts. So each
 * worker has a part of the ports, and gives out each port once.
 */
const PARTS = 8
const PART = Math.floor((END - FIRST) / PARTS)
const ownFirst = FIRST + PART * (Number(process.env['VITEST_POOL_ID'] ?? 0) % PARTS)
/** Maximum number of ports that are remembered as given. A worker never runs more programs at once. */
const MAX_GIVEN = PART / 2
/** Oldest first. */
const given = new Set<number>()

/** Ports that were free a moment ago. All are held at once, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const held = new Map<number, Server>()
  while (held.size < count) {
    const port = randomInt(ownFirst, ownFirst + PART)
    if (given.has(port)) continue
    const server = await listeningAt(port)
    if (server !== undefined) held.set(port, server)
  }
  for (const port of held.keys()) give(port)
  await Promise.all([...held.values()].map((server) => once(server.close(), 'close')))
  return [...held.keys()]
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

function give(port: number): void {
  given.add(port)
  for (const oldest of given) if (given.size > MAX_GIVEN) given.delete(oldest)
}

/** @returns undefined for a port that is taken */
async function listeningAt(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port)
  return await once(server, 'listening').then(
    () => server,
    () => undefined,
  )
}
