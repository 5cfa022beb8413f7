/** The operator's usage interface over usage and movements that a test names, with its own tokens instead of an API server. */
import { createServer, type Server } from 'node:http'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import { countsOf, type UsageColumn } from '#contract/usage/usage-report.ts'
import { systemClock } from '#platform/clock.ts'
import type { CreditEntry } from '../../operator/shards/credit-entry.ts'
import type { AccountLedger } from '../../operator/usage/ledger-reader.ts'
import { dayOf, noOpenUsage, withTaken } from '../../operator/usage/usage-book.ts'
import { createUsageServer } from '../../operator/usage/usage-server.ts'
import { listening } from './listening.ts'

/** What a key has used of a model. */
export interface Used {
  readonly account: string
  /** `namespace/name` */
  readonly key: string
  readonly model: string
  readonly counts: Readonly<Partial<Record<UsageColumn, number>>>
  /** ms since 1970 */
  readonly atMs?: number
}

export class UsageOfAccounts implements Disposable {
  /** The interface refuses other tokens; undefined: it asks for none. */
  token: string | undefined
  /** Questions by path with their query, in order. */
  readonly asked: string[] = []
  readonly used: Used[] = []
  readonly credits: CreditEntry[] = []
  /** Micro-units that the books have beyond `used`. */
  spent: Record<string, bigint> = {}
  url = ''
  readonly #server: Server

  private constructor() {
    const usage = createUsageServer({
      access: {
        check: ({ authorization }) =>
          Promise.resolve(
            this.token === undefined || authorization === `Bearer ${this.token}` ? undefined : { status: 401, message: 'another token' },
          ),
      },
      read: (account) => Promise.resolve({ open: this.#open(account), closed: undefined }),
      readLedger: (account) => Promise.resolve(this.#ledger(account)),
      currency: () => Promise.resolve('EUR'),
      clock: systemClock,
      outage: { failed: () => undefined, works: () => undefined },
    })
    this.#server = createServer((request, response) => {
      this.asked.push(request.url ?? '')
      usage.emit('request', request, response)
    })
  }

  static async start(): Promise<UsageOfAccounts> {
    const started = new UsageOfAccounts()
    started.url = `http://127.0.0.1:${await listening(started.#server)}`
    return started
  }

  credit(account: string, id: string, amount: string, more: Partial<CreditEntry> = {}): void {
    const micros = parseSignedAmount(amount)
    if (micros === undefined) throw new RangeError(amount)
    this.credits.push({ id, account, micros, type: 'TopUp', time: '2026-11-20T10:00:00Z', reference: '', ...more })
  }

  #rows(account: string): readonly Used[] {
    return this.used.filter((one) => one.account === account)
  }

  #open(account: string): ReturnType<typeof withTaken> | undefined {
    const used = this.#rows(account)
    if (used.length === 0) return undefined
    const nowMs = systemClock.now()
    const rows = used.map(({ key, model, counts, atMs = nowMs }) => ({ day: dayOf(atMs), key, model, counts: countsOf(counts) }))
    return withTaken(noOpenUsage(account), { state: 'rows', nowMs, number: 1, rows }, -1, (uid) => uid)
  }

  #ledger(account: string): AccountLedger | undefined {
    const credits = this.credits.filter((one) => one.account === account)
    if (credits.length === 0) return undefined
    const counted = this.#rows(account).reduce((sum, { counts }) => sum + BigInt(counts.costMicros ?? 0), 0n)
    const book = { openFrom: 1, closedSpend: counted + (this.spent[account] ?? 0n), spent: new Map<string, number>() }
    return { book, credits, usage: { open: this.#open(account), closed: undefined } }
  }

  [Symbol.dispose](): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}
