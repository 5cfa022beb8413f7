/** The part of a gateway process that holds the keys, over a real Redis. */
import { perKind } from '#contract/records/record-kinds.ts'
import { KeyTable } from '../../gateway/auth/key-table.ts'
import { RedisProjectionSource } from '../../gateway/projection/redis-projection.ts'
import { RevisionFollower } from '../../gateway/projection/revision-follower.ts'
import { systemClock } from '#platform/clock.ts'
import { RedisConnection, type RedisSettings } from '#platform/redis-connection.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import type { RedisPart, RedisUser } from './redis-part.ts'
import type { IssuedKey } from './records.ts'
import { waitFor } from './wait-for.ts'

export function redisSettings(redis: RedisPart, user: RedisUser): RedisSettings {
  const { REDIS_URL, REDIS_USERNAME, REDIS_PASSWORD } = redis.envFor(user)
  return { url: REDIS_URL, username: REDIS_USERNAME, password: REDIS_PASSWORD }
}

/** The operator's store, over a connection of its own. */
export function redisStore(redis: RedisPart, commandMs = 2_000): RedisProjectionStore {
  return new RedisProjectionStore(new RedisConnection(redisSettings(redis, 'operator'), 'operator', { commandMs }), 'hg')
}

/** Follows the projection from its making; stop its `follower`. */
export class RedisGateway {
  readonly keys = new KeyTable()
  readonly models = new KeyTable()
  readonly lines: string[] = []
  readonly follower: RevisionFollower
  loads = 0

  constructor(process: string, settings: RedisSettings) {
    const line = (...args: unknown[]): void => void this.lines.push(args.map(String).join(' '))
    this.follower = new RevisionFollower({
      source: new RedisProjectionSource(settings, 'hg'),
      tables: { ...perKind(() => new KeyTable()), key: this.keys, model: this.models },
      process,
      version: '0',
      clock: systemClock,
      log: { debug: line, info: line, warn: line, error: line },
      backends: () => ({}),
      random: () => 0,
      onLoaded: () => (this.loads += 1),
    })
    this.follower.start()
  }

  async ready(): Promise<this> {
    await waitFor('the gateway to load', () => this.follower.loaded)
    return this
  }

  state({ credential }: IssuedKey): string {
    return this.keys.find(credential)?.record.state ?? 'unknown'
  }

  /** @returns the first line that matches */
  said(pattern: RegExp): Promise<string> {
    return waitFor(`a line like ${pattern.source}`, () => this.lines.find((line) => pattern.test(line)))
  }
}
