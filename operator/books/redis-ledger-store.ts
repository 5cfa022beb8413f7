/** Implements OperatorLedgerStore in Redis. Many subjects share one round trip, with one function call per subject. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { RedisConnection } from '#platform/redis-connection.ts'
import { ledgerFunctions, type LedgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { LEDGER_CAPS } from '#contract/ledger/ledger-layout.ts'
import { ledgerKeys, ledgerPattern, settledSubjects, usedAccounts } from '#contract/redis/redis-keys.ts'
import { loadLibrary } from '../redis-library.ts'
import type {
  BudgetRead,
  BudgetSurvey,
  LedgerKey,
  OperatorLedgerStore,
  SeedOutcome,
  SubjectCheckpoints,
  SubjectFields,
  WindowSpend,
} from './ledger-store.ts'

/** Calls per round trip. Redis serves other clients after each 16 KiB; on a busy machine a round trip costs more than its calls. */
const BATCH = 1_000
/** The same for surveys, whose answers have no fixed size. */
const SURVEY_BATCH = 100
/** Keys per step of a walk. */
const WALK_COUNT = 200
/** Part of its memory at which Redis counts as nearly full. */
const NEARLY_FULL = 0.9
/** Maximum characters of a subject: a uid, or a foreign word. */
const MAX_SUBJECT_CHARACTERS = 128

const texts = z.array(z.string())

type Call = readonly [function_: string, key: string, ...args: string[]]

/** @param redis a connection of the ACL user that may write the ledger */
export class RedisLedgerAdmin implements OperatorLedgerStore {
  readonly #redis: Pick<RedisConnection, 'run'>
  readonly #prefix: string
  readonly #functions: LedgerFunctions
  /** Whether the text of the library in Redis was compared with our own: later checks are cheap. */
  #isCompared = false

  /** @param keyPrefix chart value `redis.keyPrefix` */
  constructor(redis: Pick<RedisConnection, 'run'>, keyPrefix: string) {
    this.#redis = redis
    this.#prefix = keyPrefix
    this.#functions = ledgerFunctions(keyPrefix)
  }

  async prepare(): Promise<0 | 1> {
    const loaded = await this.#redis.run((client) => loadLibrary(client, this.#functions, this.#isCompared))
    this.#isCompared = true
    return loaded
  }

  async timeMs(): Promise<number> {
    const [seconds, micros] = await this.#redis.run((client) => client.time())
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
  }

  async settled(limit: number): Promise<readonly string[]> {
    const key = settledSubjects(this.#prefix)
    const [reply] = await this.#each([[this.#functions.settled, key, String(limit)]])
    if (!(reply instanceof Error)) return texts.parse(reply)
    await this.unlink([key])
    return []
  }

  async read(asked: readonly SubjectFields[]): Promise<readonly BudgetRead[]> {
    const replies = await this.#each(asked.map(({ subject, fields }) => this.#call('read', subject, ...fields)))
    return replies.map((reply, at) => readOf(reply, asked[at]?.fields.length ?? 0))
  }

  async survey(subjects: readonly string[]): Promise<readonly BudgetSurvey[]> {
    const calls = subjects.map((subject) => this.#call('survey', subject))
    return (await this.#each(calls, SURVEY_BATCH)).map(surveyOf)
  }

  async seed(subjects: readonly SubjectCheckpoints[]): Promise<readonly SeedOutcome[]> {
    const stamp = `${randomUUID()}-${Math.floor((await this.timeMs()) / 1_000)}` // later seeds end in larger numbers
    const calls = subjects.map(({ subject, checkpoints }) => {
      const known = checkpoints.slice(0, LEDGER_CAPS.reports).flatMap(([field, spent]) => [field, String(spent)])
      return this.#call('seed', subject, stamp, ...known)
    })
    const replies = await this.#each(calls)
    return replies.map((reply) => (reply instanceof Error ? 'damaged' : reply === stamp ? 'planted' : 'present'))
  }

  dropBudgets(subjects: readonly string[]): Promise<void> {
    return this.unlink(subjects.map((subject) => this.#budget(subject)))
  }

  async forget(windows: readonly SubjectFields[]): Promise<void> {
    await this.#each(windows.map(({ subject, fields }) => this.#call('forget', subject, ...fields.slice(0, LEDGER_CAPS.reports))))
  }

  async reap(process: string, subjects: readonly string[]): Promise<void> {
    await this.#each(subjects.map((subject) => this.#call('reap', subject, process)))
  }

  async bury(process: string, subjects: readonly string[]): Promise<void> {
    await this.#each(subjects.map((subject) => this.#call('bury', subject, process)))
  }

  async remove(subjects: readonly string[]): Promise<readonly number[]> {
    return await this.#redis.run(async (client) => {
      const pipeline = client.pipeline()
      for (const subject of subjects) {
        const { balance: _, ...keys } = ledgerKeys(this.#prefix, subject) // money has an owner of its own, which has it in its books first
        pipeline.unlink(...Object.values(keys))
      }
      return ((await pipeline.exec()) ?? []).map(([error, count]) => {
        if (error) throw error
        return Number(count)
      })
    })
  }

  async isNearlyFull(): Promise<boolean> {
    const memory = await this.#redis.run((client) => client.info('memory'))
    const [used = 0, most = 0] = ['used_memory', 'maxmemory'].map((name) =>
      Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0),
    )
    return most > 0 && used >= NEARLY_FULL * most
  }

  async *walk(mostBytes: number): AsyncIterable<readonly LedgerKey[]> {
    const { walk } = this.#functions
    let cursor = '0'
    do {
      const args = [cursor, ledgerPattern(this.#prefix), String(WALK_COUNT)]
      const [next = '0', ...words] = texts.parse(await this.#redis.run((client) => client.fcall(walk, 0, ...args)))
      cursor = next
      yield Array.from({ length: words.length / 3 }, (_, at) => this.#keyOf(words.slice(3 * at, 3 * at + 3), mostBytes))
    } while (cursor !== '0')
  }

  async unlink(names: readonly string[]): Promise<void> {
    for (let at = 0; at < names.length; at += BATCH) {
      await this.#redis.run(async (client) => {
        const pipeline = client.pipeline()
        for (const name of names.slice(at, at + BATCH)) pipeline.unlink(name)
        for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
      })
    }
  }

  #budget(subject: string): string {
    return ledgerKeys(this.#prefix, subject).budget
  }

  #call(name: keyof LedgerFunctions, subject: string, ...args: readonly string[]): Call {
    return [this.#functions[name], this.#budget(subject), ...args]
  }

  #keyOf([name = '', kind = '', bytes = '']: readonly string[], mostBytes: number): LedgerKey {
    const subject = this.#subjectOf(name)
    const isSettled = name === settledSubjects(this.#prefix) || name === usedAccounts(this.#prefix)
    const isForeign = subject === undefined && !isSettled
    const isLarge = isTooLarge(kind, Number(bytes), mostBytes)
    return { name, subject, isDamaged: isForeign || isOfAnotherKind(kind, isSettled ? 'set' : 'hash') || isLarge }
  }

  #subjectOf(name: string): string | undefined {
    const subject = /:\{([^{}]+)\}:[a-z]+$/.exec(name)?.[1]
    if (subject === undefined || subject.length > MAX_SUBJECT_CHARACTERS) return undefined
    return Object.values(ledgerKeys(this.#prefix, subject)).includes(name) ? subject : undefined
  }

  /** Runs one function call per row. A damaged subject gets an Error as its reply. @throws any other error, for all rows */
  async #each(calls: readonly Call[], batch: number = BATCH): Promise<readonly unknown[]> {
    const replies: unknown[] = []
    for (let at = 0; at < calls.length; at += batch) {
      const results = await this.#redis.run((client) => {
        const pipeline = client.pipeline()
        for (const [name, key, ...args] of calls.slice(at, at + batch)) pipeline.fcall(name, 1, key, ...args)
        return pipeline.exec()
      })
      for (const [error, reply] of results ?? []) {
        if (error && !isDamage(error)) throw error
        replies.push(error ?? reply)
      }
    }
    return replies
  }
}

/** A key that was deleted during the walk has the type `none`. */
function isOfAnotherKind(kind: string, wanted: 'hash' | 'set'): boolean {
  return kind !== 'none' && kind !== wanted
}

/** Whether a hash is too large. The set of settled subjects has no bound, because it is emptied each second. */
function isTooLarge(kind: string, bytes: number, mostBytes: number): boolean {
  return kind === 'hash' && (bytes < 0 || bytes > mostBytes)
}

/** Whether the error means damage: a key of another type, or a value that the functions refuse. */
function isDamage(error: Error): boolean {
  return error.message.includes('WRONGTYPE') || error.message.includes('ERR ledger:')
}

function readOf(reply: unknown, count: number): BudgetRead {
  const parsed = texts.safeParse(reply)
  if (!parsed.success) return { state: 'damaged' }
  const [state, , ...values] = parsed.data
  if (state === 'unseeded') return { state }
  const numbers = values.map(Number)
  if (state !== 'seeded' || numbers.length !== 3 * count || !numbers.every(Number.isSafeInteger)) return { state: 'damaged' }
  return { state, windows: Array.from({ length: count }, (_, at) => windowOf(numbers.slice(3 * at, 3 * at + 3))) }
}

function windowOf([spent = 0, unsettled = 0, held = 0]: readonly number[]): WindowSpend {
  return { spent, unsettled, held }
}

function surveyOf(reply: unknown): BudgetSurvey {
  const [state, ...words] = texts.safeParse(reply).data ?? []
  const of = (what: string): string[] => words.filter((_, at) => at % 2 === 1 && words[at - 1] === what)
  const known = state === 'seeded' || state === 'unseeded' ? state : 'damaged'
  return { state: known, windows: of('window'), holders: of('holds'), spenders: of('spent') }
}
