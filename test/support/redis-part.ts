/** A real Redis with the two users that the chart makes, refusing to evict. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'
import { ManagedProcess } from './managed-process.ts'
import { waitFor } from './wait-for.ts'

const USERS = join(import.meta.dirname, '../parts/redis-users.acl')
/** Program of the server: `redis-server` of the PATH, or one that speaks the same, as Valkey's. */
const SERVER = process.env.REDIS_SERVER ?? 'redis-server'

export type RedisUser = 'admin' | 'operator' | 'gateway'

/** One server. Stop and start keep port and passwords. The data are lost, since Redis persists nothing here. */
export class RedisPart {
  readonly ip: string
  readonly port: number
  readonly process: ManagedProcess
  readonly #passwords: Readonly<Record<RedisUser, string>>
  #admin: Redis | undefined

  private constructor(ip: string, port: number, process: ManagedProcess, passwords: Readonly<Record<RedisUser, string>>) {
    this.ip = ip
    this.port = port
    this.process = process
    this.#passwords = passwords
  }

  /**
   * @param folder for its files; the log is `redis.log` in it
   * @param options `policy` other than noeviction for the test that Headgate refuses it
   */
  static async start(
    folder: string,
    ip: string,
    options: { readonly policy?: string; readonly args?: readonly string[] } = {},
  ): Promise<RedisPart> {
    mkdirSync(folder, { recursive: true })
    const port = await freePort()
    const password = () => randomBytes(18).toString('base64url')
    const passwords = { admin: password(), operator: password(), gateway: password() }
    const users = readFileSync(USERS, 'utf8').replaceAll(
      /@(\w+)_PASSWORD@/g,
      (_, user: string) => passwords[user.toLowerCase() as RedisUser],
    )
    writeFileSync(join(folder, 'users.acl'), users, { mode: 0o600 })
    const flags = ['--port', String(port), '--bind', ip, '--protected-mode', 'no', '--dir', folder, '--aclfile', join(folder, 'users.acl')]
    const policy = [
      '--enable-debug-command',
      'yes',
      '--save',
      '',
      '--appendonly',
      'no',
      '--maxmemory-policy',
      options.policy ?? 'noeviction',
      ...(options.args ?? []),
    ]
    const process = new ManagedProcess({
      name: 'redis',
      argv: [SERVER, ...flags, ...policy],
      env: {},
      logFile: join(folder, 'redis.log'),
    })
    const redis = new RedisPart(ip, port, process, passwords)
    await redis.start()
    return redis
  }

  async start(): Promise<void> {
    await this.process.start()
    await waitFor('Redis to answer', async () => (await this.admin.ping()) === 'PONG')
  }

  async stop(): Promise<void> {
    this.#admin?.disconnect()
    this.#admin = undefined
    await this.process.stop()
  }

  get url(): string {
    return `redis://${this.ip}:${this.port}`
  }

  envFor(user: RedisUser): { REDIS_URL: string; REDIS_USERNAME: string; REDIS_PASSWORD: string } {
    return { REDIS_URL: this.url, REDIS_USERNAME: user, REDIS_PASSWORD: this.#passwords[user] }
  }

  /** A connection of the tests' own, for FLUSHALL, CLIENT PAUSE, DEBUG SLEEP and for reads. */
  get admin(): Redis {
    this.#admin ??= this.connect('admin')
    return this.#admin
  }

  /** A new connection as one of the users; the caller disconnects it. */
  connect(user: RedisUser): Redis {
    const client = new Redis({
      host: this.ip,
      port: this.port,
      username: user,
      password: this.#passwords[user],
      disableClientInfo: true, // the users may not run CLIENT SETINFO, which Redis 7.0 lacks and newer servers refuse with a line in the ACL log
      retryStrategy: () => 50,
    })
    client.on('error', () => undefined) // some tests kill the server; commands reject by themselves
    return client
  }

  async dump(): Promise<string> {
    const lines: string[] = []
    for (const key of await this.admin.keys('*')) lines.push(`${key}\n${JSON.stringify(await this.#read(key))}`)
    return lines.join('\n')
  }

  async #read(key: string): Promise<unknown> {
    switch (await this.admin.type(key)) {
      case 'hash':
        return this.admin.hgetall(key)
      case 'stream':
        return this.admin.xrange(key, '-', '+')
      case 'zset':
        return this.admin.zrange(key, '0', '-1', 'WITHSCORES')
      case 'set':
        return this.admin.smembers(key)
      case 'list':
        return this.admin.lrange(key, 0, -1)
      default:
        return this.admin.get(key)
    }
  }
}

export async function sentBytes({ admin }: RedisPart): Promise<number> {
  return Number(/^total_net_output_bytes:(\d+)/m.exec(await admin.info('stats'))?.[1])
}
