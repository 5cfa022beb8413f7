/** Open streams without events: the memory of each and the CPU time of all, beside the bare proxy and nginx. */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench, Contender } from './contenders.ts'
import { idleBody } from './fixtures.ts'
import type { PartResult, Progress } from './operator-parts.ts'
import { cpuMs, memory } from './proc.ts'
import { table } from './table.ts'

const CONTENDERS = ['bare', 'gateway', 'nginx'] as const
/** Streams that are opened at once. A contender would refuse more than fit into its accept queue. */
const BATCH = 50
/** Time for a contender to collect the garbage of the opening, ms. */
const SETTLE_MS = 5_000
/** Length of the measured window: long enough for two keep-alives of the gateway, ms. */
const WINDOW_MS = 30_000

interface IdleCost {
  readonly name: (typeof CONTENDERS)[number]
  /** KiB of resident memory per stream. */
  readonly kibPerStream: number
  /** CPU time per second for all streams, ms. */
  readonly cpuMsPerSecond: number
  /** Streams that did not stay open. */
  readonly lost: number
}

/** @param streams open at the same time */
export async function idleStreamsPart(bench: Bench, streams: number, say: Progress): Promise<PartResult> {
  const costs: IdleCost[] = []
  for (const name of CONTENDERS) {
    const contender = bench.contenders.get(name)
    if (!contender) throw new TypeError(`no contender ${name}`)
    say(`idle-streams: ${streams} streams through ${name}`)
    costs.push({ name, ...(await idleCost(contender, bench.key, streams)) })
  }
  const rows = costs.map(({ name, kibPerStream, cpuMsPerSecond, lost }) => [
    name,
    kibPerStream.toFixed(1),
    cpuMsPerSecond.toFixed(1),
    String(lost),
  ])
  const text = [
    `idle-streams: ${streams} open streams without an event for ${WINDOW_MS / 1000} s; the gateway sends each of them a keep-alive every 15 s`,
    ...table([['', 'KiB per stream', 'CPU ms per second', 'lost'], ...rows]),
  ].join('\n')
  return { text, isMissed: costs.some(({ lost }) => lost > 0), data: costs }
}

async function idleCost(contender: Contender, key: string, streams: number): Promise<Omit<IdleCost, 'name'>> {
  const pids = contender.pids('stream')
  const before = memory(pids).rssMb
  const sockets: Socket[] = []
  try {
    while (sockets.length < streams) {
      const count = Math.min(BATCH, streams - sockets.length)
      sockets.push(...(await Promise.all(Array.from({ length: count }, () => openStream(contender.url('stream'), key)))))
    }
    await sleep(SETTLE_MS)
    const cpuBefore = cpuMs(pids)
    await sleep(WINDOW_MS)
    return {
      kibPerStream: ((memory(pids).rssMb - before) * 1e6) / 1024 / streams,
      cpuMsPerSecond: (cpuMs(pids) - cpuBefore) / (WINDOW_MS / 1000),
      lost: sockets.filter(({ readable }) => !readable).length,
    }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

/** Resolves once the first event has arrived. */
async function openStream(url: string, key: string): Promise<Socket> {
  const { hostname, port, pathname } = new URL(url)
  const body = idleBody()
  const head = `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  const socket = connect(Number(port), hostname)
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  let seen = ''
  socket.on('error', reject).on('close', () => reject(new Error(`a stream ended with: ${seen.slice(0, 200)}`)))
  socket.on('data', (chunk: Buffer) => {
    seen = (seen + chunk.toString('latin1')).slice(0, 4_096)
    if (seen.includes('data: ')) resolve(socket)
  })
  socket.write(head + body)
  return promise
}
