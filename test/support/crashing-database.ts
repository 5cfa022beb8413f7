/** SQLite files whose statements fail or end the process, as a test says. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { QuickDatabase } from './quick-database.ts'

const WRITE = /^\s*(insert|update|delete|replace|commit|create|alter|drop)\b/i

/** When a process dies: at the n-th write, counted from 1, or at the first one that matches; before it is done or after it. */
export interface DeathAt {
  readonly write: number | RegExp
  readonly when: 'before' | 'after'
}

export class Killed extends Error {
  override readonly name = 'Killed'
}

/** One process that dies at a write, of whatever kind: from then on, nothing that it asks for is done or answered. */
export class MortalProcess {
  /** The writes so far. */
  readonly writes: string[] = []
  #at: DeathAt | undefined
  #isDead = false

  constructor(at?: DeathAt) {
    this.#at = at
  }

  get isDead(): boolean {
    return this.#isDead
  }

  kill(): void {
    this.#isDead = true
  }

  /** Dies at the n-th write from now, counted from 1. */
  dieAtNext(n: number, when: DeathAt['when']): void {
    this.#at = { write: this.writes.length + n, when }
  }

  /** For the opening of a database. */
  readonly open = (path: string): DatabaseSync =>
    new GuardedDatabase(path, (sql, run) => (WRITE.test(sql) ? this.write(sql, run) : this.read(run)))

  read<R>(run: () => R): R {
    this.#assertAlive()
    return run()
  }

  write<R>(what: string, run: () => R): R {
    const dies = this.#nextDies(what)
    if (dies === 'before') this.kill()
    this.#assertAlive()
    const result = run()
    if (dies === 'after') this.kill()
    this.#assertAlive()
    return result
  }

  async asyncWrite<R>(what: string, run: () => Promise<R>): Promise<R> {
    const dies = this.#nextDies(what)
    if (dies === 'before') this.kill()
    this.#assertAlive()
    const result = await run()
    if (dies === 'after') this.kill()
    this.#assertAlive()
    return result
  }

  #nextDies(what: string): DeathAt['when'] | undefined {
    this.#assertAlive()
    this.writes.push(what)
    const at = this.#at?.write
    return at === this.writes.length || (at instanceof RegExp && at.test(what)) ? this.#at?.when : undefined
  }

  #assertAlive(): void {
    if (this.#isDead) throw new Killed('the process is dead')
  }
}

/** A file whose statements go through `around`. `close` rolls an open transaction back, as the end of a process does. */
class GuardedDatabase extends QuickDatabase {
  readonly #around: <R>(sql: string, run: () => R) => R

  constructor(path: string, around: <R>(sql: string, run: () => R) => R) {
    super(path)
    this.#around = around
  }

  override prepare(sql: string): StatementSync {
    const statement = super.prepare(sql)
    const around = this.#around
    return new Proxy(statement, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        const run = (...args: unknown[]): unknown => Reflect.apply(value, target, args) as unknown
        return name === 'run' || name === 'all' || name === 'get' ? (...args: unknown[]) => around(sql, () => run(...args)) : run
      },
    })
  }
}

/** A volume on which statements that match `failing` meet an I/O error. */
export class FailingVolume {
  failing: RegExp | undefined

  /** For the opening of a database. */
  readonly open = (path: string): DatabaseSync =>
    new GuardedDatabase(path, (sql, run) => {
      if (this.failing?.test(sql)) throw Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 10 })
      return run()
    })
}
