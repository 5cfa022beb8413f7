/** The ledger's library on a real Redis, with a clock that tests may set. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { LEDGER_COMMANDS, ledgerFunctions, type LedgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { ledgerKeys, ledgerPattern } from '#contract/redis/redis-keys.ts'
import type { LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { BalanceStore } from '../../operator/books/balance-store.ts'
import { RedisBalanceStore } from '../../operator/books/redis-balance-store.ts'
import { RedisPart } from './redis-part.ts'

const GATEWAY_PASSWORD = 'of-a-test-server-on-loopback'
const CLOCK_KEY = 'hg:l:{clock}:ms'
/** `own`: that of the server. `set`: `setClock` says the time. `shifted`: `setClock` says by how many ms the server's clock is wrong. */
export type RedisClock = keyof typeof CLOCKS
const TIME = `redis.call('TIME')`
const SET = `redis.call('GET', '${CLOCK_KEY}')`
const CLOCKS = {
  own: TIME,
  set: `{ math.floor(${SET} / 1000), (${SET} % 1000) * 1000 }`,
  shifted: `(function(t) local ms = t[1] * 1000 + math.floor(t[2] / 1000) + (${SET} or 0) return { math.floor(ms / 1000), (ms % 1000) * 1000 } end)(${TIME})`,
}

/** One server with the library; the gateways' user has the rights that `LEDGER_COMMANDS` names and no others. */
export class LedgerRedis {
  readonly part: RedisPart
  readonly functions: LedgerFunctions
  readonly gateway: Redis
  /** The balances as the operator sees them. */
  readonly balances: BalanceStore
  readonly #folder: string

  private constructor(part: RedisPart, folder: string, functions: LedgerFunctions, gateway: Redis) {
    this.part = part
    this.#folder = folder
    this.functions = functions
    this.gateway = gateway
    this.balances = new RedisBalanceStore({ run: (commands) => commands(part.admin) }, 'hg')
  }

  /** @param timing of the library */
  static async start(timing: LedgerTiming, clock: RedisClock): Promise<LedgerRedis> {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-ledger-'))
    const part = await RedisPart.start(folder, '127.0.0.1')
    const functions = ledgerFunctions('hg', timing)
    const rights = LEDGER_COMMANDS.map((command) => `+${command}`)
    const test = clock === 'own' ? [] : ['+get']
    await part.admin.acl(
      'SETUSER',
      'ledger',
      'on',
      `>${GATEWAY_PASSWORD}`,
      `~${ledgerPattern('hg')}`,
      '+fcall',
      '+ping',
      '+info',
      ...rights,
      ...test,
    )
    const gateway = new Redis({
      host: part.ip,
      port: part.port,
      username: 'ledger',
      password: GATEWAY_PASSWORD,
      protocol: 2,
      disableClientInfo: true,
      maxRetriesPerRequest: 0,
    })
    gateway.on('error', () => undefined)
    const redis = new LedgerRedis(part, folder, functions, gateway)
    await redis.load(functions.code.replace(TIME, CLOCKS[clock]))
    return redis
  }

  /** Settings with which another process connects as the gateways' user. */
  get credentials(): { readonly host: string; readonly port: number; readonly username: string; readonly password: string } {
    return { host: this.part.ip, port: this.part.port, username: 'ledger', password: GATEWAY_PASSWORD }
  }

  async load(code: string): Promise<void> {
    await this.part.admin.call('FUNCTION', 'LOAD', 'REPLACE', code)
  }

  async setClock(nowMs: number): Promise<void> {
    await this.part.admin.set(CLOCK_KEY, String(nowMs))
  }

  async seed(subject: string, seed: string, checkpoints: ReadonlyArray<readonly [string, number]> = []): Promise<unknown> {
    return await this.#admin(this.functions.seed, subject, [seed, ...checkpoints.flatMap(([field, spent]) => [field, String(spent)])])
  }

  async reap(subject: string, process: string): Promise<unknown> {
    return await this.#admin(this.functions.reap, subject, [process])
  }

  async forget(subject: string, fields: readonly string[]): Promise<unknown> {
    return await this.#admin(this.functions.forget, subject, fields)
  }

  async bury(subject: string, process: string): Promise<unknown> {
    return await this.#admin(this.functions.bury, subject, [process])
  }

  async hash(key: string): Promise<Record<string, string>> {
    return await this.part.admin.hgetall(key)
  }

  async stop(): Promise<void> {
    this.gateway.disconnect()
    await this.part.stop()
    rmSync(this.#folder, { recursive: true })
  }

  async #admin(name: string, subject: string, args: readonly string[]): Promise<unknown> {
    return await this.part.admin.fcall(name, 1, ledgerKeys('hg', subject).budget, ...args)
  }
}
