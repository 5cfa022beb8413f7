/** An attacker with the Redis user of the gateways, who attacks the heartbeats of all pods. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { RedisPart } from './redis-part.ts'

/** Names that a gateway pod can learn from Redis and from the product. */
export const PODS = 'hg:{proj}:pods'
export const ACKS = 'hg:{proj}:acks'
const HEARTBEAT_FUNCTION = 'hg_v1_heartbeat'
const EVERY_MS = 100
const GHOSTS = 20_000
const HUGE_BYTES = 32 * 2 ** 20
const FILLER_BYTES = 8 * 2 ** 20
const YEAR_2100 = 4_102_444_800_000

export interface Attack {
  readonly name: string
  readonly strike: (attacker: RedisAttacker) => Promise<unknown>
}

/** A connection as the gateways' user; `close` it. */
export class RedisAttacker {
  readonly redis: Redis
  #strikes = 0

  constructor(part: RedisPart) {
    this.redis = part.connect('gateway')
  }

  close(): void {
    this.redis.disconnect()
  }

  /** Strikes repeatedly for some time; strikes that Redis refuses are tried again. */
  async attack({ strike }: Attack, forMs: number): Promise<void> {
    const end = performance.now() + forMs
    while (performance.now() < end) {
      await strike(this).catch(() => undefined) // refused, for example with WRONGTYPE after a success
      await sleep(EVERY_MS)
    }
  }

  async dropAcks(): Promise<void> {
    const names = (await this.acks()).map(([process]) => process)
    if (names.length > 0) await this.redis.hdel(ACKS, ...names)
  }

  async dropPods(): Promise<void> {
    const names = (await this.acks()).map(([process]) => process)
    if (names.length > 0) await this.redis.zrem(PODS, ...names)
  }

  async forgeAll(text: string): Promise<void> {
    const names = (await this.acks()).map(([process]) => process)
    if (names.length > 0) await this.redis.hset(ACKS, ...names.flatMap((process) => [process, text]))
  }

  async changed(fields: object): Promise<string> {
    const text = (await this.acks())[0]?.[1] ?? '{}'
    return JSON.stringify({ ...(JSON.parse(text) as object), ...fields })
  }

  async addGhosts(): Promise<void> {
    const strike = this.#strikes++
    const ghosts = Array.from({ length: GHOSTS }, (_, i) => [String(Date.now()), `ghost-${strike}-${i}/1`])
    await this.redis.zadd(PODS, ...ghosts.flat())
  }

  async addFiller(): Promise<void> {
    await this.redis.hset(ACKS, `filler-${this.#strikes++}/1`, 'x'.repeat(FILLER_BYTES))
  }

  async acks(): Promise<[string, string][]> {
    const [, flat] = await this.redis.hscan(ACKS, 0, 'COUNT', 10_000)
    return flat.flatMap((text, i): [string, string][] => (i % 2 === 0 ? [[text, flat[i + 1] ?? '']] : []))
  }
}

export const ATTACKS: readonly Attack[] = [
  { name: 'all heartbeats are deleted', strike: (pod) => pod.dropPods().then(() => pod.dropAcks()) },
  { name: 'the list of pods becomes a hash', strike: (pod) => pod.dropPods().then(() => pod.redis.hset(PODS, 'a', 'b')) },
  { name: 'the acknowledgements become a sorted set', strike: (pod) => pod.dropAcks().then(() => pod.redis.zadd(ACKS, 1, 'a')) },
  {
    name: 'a heartbeat with the two names swapped',
    strike: (pod) => pod.dropAcks().then(() => pod.redis.call('FCALL', HEARTBEAT_FUNCTION, '2', ACKS, PODS, 'a/1', '{}')),
  },
  { name: 'a ghost lives until 2100', strike: (pod) => pod.redis.zadd(PODS, YEAR_2100, 'ghost/1') },
  { name: 'a ghost lives for ever', strike: (pod) => pod.redis.zadd(PODS, '+inf', 'ghost/1') },
  {
    name: 'a ghost acknowledges nothing',
    strike: async (pod) => {
      await pod.redis.zadd(PODS, Date.now() + 3_600_000, 'ghost/2')
      await pod.redis.hset(ACKS, 'ghost/2', await pod.changed({ rev: 0 }))
    },
  },
  { name: `${GHOSTS} ghosts`, strike: (pod) => pod.addGhosts() },
  { name: 'a revision that never was', strike: async (pod) => pod.forgeAll(await pod.changed({ rev: 999_999_999 })) },
  { name: 'another epoch', strike: async (pod) => pod.forgeAll(await pod.changed({ epoch: 'nowhere' })) },
  { name: 'an acknowledgement of 32 MiB', strike: (pod) => pod.forgeAll('x'.repeat(HUGE_BYTES)) },
  { name: 'the memory is filled', strike: (pod) => pod.addFiller() },
  { name: 'acknowledgements that are no JSON', strike: (pod) => pod.forgeAll('{"rev":') },
]
