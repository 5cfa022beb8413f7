/** A real Redis Cluster: three primaries without replicas that share all slots. Each has the two users that the chart makes. */
import { join } from 'node:path'
import { Cluster } from 'ioredis'
import { freePort } from './free-port.ts'
import { RedisPart } from './redis-part.ts'
import { waitFor } from './wait-for.ts'

const SLOTS = 16_384
const PRIMARIES = 3
const KEYS_PER_MOVE = '100'
const MOVE_TIMEOUT_MS = '5000'

type SlotRange = readonly [first: number, last: number, primary: readonly [ip: string, port: number]]

/** One Cluster. Primary n owns the n-th third of the slots until a test moves one. */
export class RedisCluster {
  readonly nodes: readonly RedisPart[]

  private constructor(nodes: readonly RedisPart[]) {
    this.nodes = nodes
  }

  /** @param folder for the files of all nodes */
  static async start(folder: string, ip: string): Promise<RedisCluster> {
    const nodes: RedisPart[] = []
    const busPorts: number[] = []
    for (let at = 0; at < PRIMARIES; at += 1) {
      const busPort = await freePort()
      busPorts.push(busPort)
      nodes.push(await RedisPart.start(join(folder, String(at)), ip, { args: clusterArgs(busPort) }))
    }
    const meeting = [ip, String(nodes[0]?.port), String(busPorts[0])]
    for (const [at, { admin }] of nodes.entries()) {
      const [first, last] = [Math.floor((SLOTS * at) / PRIMARIES), Math.floor((SLOTS * (at + 1)) / PRIMARIES) - 1]
      await admin.call('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last))
      await admin.call('CLUSTER', 'MEET', ...meeting)
    }
    const passwords = nodes.map((node) => `>${node.envFor('admin').REDIS_PASSWORD}`)
    for (const { admin } of nodes) {
      await waitFor('the cluster to know all slots', async () => isComplete(String(await admin.call('CLUSTER', 'INFO'))))
      await admin.acl('SETUSER', 'admin', ...passwords) // a client of the Cluster has one password for all nodes
    }
    return new RedisCluster(nodes)
  }

  /** A client that knows the slots and follows them, as the tests' own user; the caller disconnects it. */
  async connect(): Promise<Cluster> {
    const { ip: host, port } = this.#first
    const { REDIS_USERNAME: username, REDIS_PASSWORD: password } = this.#first.envFor('admin')
    const client = new Cluster([{ host, port }], {
      redisOptions: { username, password, protocol: 2, disableClientInfo: true, maxRetriesPerRequest: 0 },
      maxRedirections: 3,
      enableOfflineQueue: true,
      slotsRefreshTimeout: 2_000,
      lazyConnect: true,
    })
    client.on('error', () => undefined) // some tests kill a node; commands reject by themselves
    await client.connect()
    return client
  }

  /** The slot of a key, as the Cluster computes it. */
  async slotOf(key: string): Promise<number> {
    return Number(await this.#first.admin.call('CLUSTER', 'KEYSLOT', key))
  }

  /** The primary that serves a slot, as the first node knows it. @throws when none does */
  async ownerOf(slot: number): Promise<RedisPart> {
    const ranges = (await this.#first.admin.call('CLUSTER', 'SLOTS')) as SlotRange[] // as documented for the command
    const port = ranges.find(([first, last]) => first <= slot && slot <= last)?.[2][1]
    const owner = this.nodes.find((node) => node.port === port)
    if (!owner) throw new Error(`no primary serves slot ${slot}`)
    return owner
  }

  /** Moves a slot with its keys to another primary, in the steps of the documented resharding; every node knows it afterwards. */
  async moveSlot(slot: number, to: RedisPart): Promise<void> {
    const from = await this.ownerOf(slot)
    const [fromID, toID] = [await idOf(from), await idOf(to)]
    const setSlot = (node: RedisPart, ...words: string[]) => node.admin.call('CLUSTER', 'SETSLOT', String(slot), ...words)
    await setSlot(to, 'IMPORTING', fromID)
    await setSlot(from, 'MIGRATING', toID)
    const { REDIS_USERNAME: username, REDIS_PASSWORD: password } = to.envFor('admin')
    const target = [to.ip, String(to.port), '', '0', MOVE_TIMEOUT_MS, 'AUTH2', username, password]
    for (let keys = await keysIn(from, slot); keys.length > 0; keys = await keysIn(from, slot)) {
      await from.admin.call('MIGRATE', ...target, 'KEYS', ...keys)
    }
    for (const node of [to, ...this.nodes.filter((other) => other !== to)]) await setSlot(node, 'NODE', toID)
  }

  /** Deletes every key; the function libraries stay. */
  async flush(): Promise<void> {
    await Promise.all(this.nodes.map(({ admin }) => admin.flushall()))
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()))
  }

  get #first(): RedisPart {
    const [first] = this.nodes
    if (!first) throw new TypeError('a Cluster has nodes')
    return first
  }
}

/** Name of a node as ioredis lists it: `host:port`. */
export function nameOf({ ip, port }: RedisPart): string {
  return `${ip}:${port}`
}

function clusterArgs(busPort: number): string[] {
  const settings = {
    'cluster-enabled': 'yes',
    'cluster-port': String(busPort),
    'cluster-node-timeout': '2000',
    'cluster-require-full-coverage': 'no',
  }
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
}

function isComplete(info: string): boolean {
  return ['cluster_state:ok', `cluster_slots_assigned:${SLOTS}`, `cluster_known_nodes:${PRIMARIES}`].every((line) => info.includes(line))
}

async function idOf({ admin }: RedisPart): Promise<string> {
  return String(await admin.call('CLUSTER', 'MYID'))
}

async function keysIn({ admin }: RedisPart, slot: number): Promise<string[]> {
  return (await admin.call('CLUSTER', 'GETKEYSINSLOT', String(slot), KEYS_PER_MOVE)) as string[] // names of keys
}
