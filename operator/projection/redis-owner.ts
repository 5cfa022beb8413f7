/** The connection of everything that writes to Redis: it lets commands through only while Redis is not that of another installation. */
import type { Redis } from 'ioredis'
import type { Clock } from '#platform/clock.ts'
import { type RedisConnection, StoreUnavailable } from '#platform/redis-connection.ts'
import { ForeignStore, type Owner, refuseForeign } from './foreign-store.ts'
import { readMeta } from './redis-projection-store.ts'

/** Another installation may take over this Redis at any time, so its owner is read this often, ms, and after each reconnect. */
const CHECK_EVERY_MS = 1_000

export interface OwnRedisDeps {
  readonly redis: Pick<RedisConnection, 'run'> & { readonly client: Pick<Redis, 'on'> }
  readonly keyPrefix: string
  readonly clock: Clock
  readonly takesOver: boolean
}

export class OwnRedis implements Pick<RedisConnection, 'run'> {
  readonly #deps: OwnRedisDeps
  #owner: Owner | undefined
  /** Monotonic ms. */
  #checkAtMs = Number.NEGATIVE_INFINITY

  constructor(deps: OwnRedisDeps) {
    this.#deps = deps
    deps.redis.client.on('close', () => (this.#checkAtMs = Number.NEGATIVE_INFINITY))
  }

  /** From now on commands run. @param installation its identity, durable beside the keyring */
  belongsTo(installation: string): void {
    this.#owner = { installation, takesOver: this.#deps.takesOver }
  }

  /** @throws ForeignStore if Redis belongs to another installation; StoreUnavailable for every other failure */
  async run<T>(commands: (client: Redis) => Promise<T>, waitMs?: number): Promise<T> {
    const owner = this.#owner
    if (owner === undefined) throw new StoreUnavailable('the identity of this installation was not read yet')
    const checked = async (client: Redis): Promise<T | ForeignStore> => (await this.#foreign(client, owner)) ?? (await commands(client))
    const result = await this.#deps.redis.run(checked, waitMs)
    if (result instanceof ForeignStore) throw result
    return result
  }

  async #foreign(client: Redis, owner: Owner): Promise<ForeignStore | undefined> {
    const { clock, keyPrefix } = this.#deps
    if (clock.monotonic() < this.#checkAtMs) return undefined
    const meta = await readMeta(client, keyPrefix)
    try {
      if (meta) refuseForeign(meta, owner)
    } catch (error) {
      if (error instanceof ForeignStore) return error
      throw error
    }
    this.#checkAtMs = clock.monotonic() + CHECK_EVERY_MS
    return undefined
  }
}
