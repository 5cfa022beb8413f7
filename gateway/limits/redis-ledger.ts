/** The ledger in Redis: one call of a Redis function per ledger call. Limits hold over all processes that use this Redis. */
import type { Redis } from 'ioredis'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { LEDGER_TIMING, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { decodeLedgerReply, encodeLedgerCall, LedgerReplyUnreadable } from '#contract/ledger/ledger-wire.ts'
import { ledgerKeys, settledSubjects } from '#contract/redis/redis-keys.ts'
import { LedgerCallRefused, type LedgerStore } from './ledger.ts'

/** Error replies about the server and not about the call. */
const SERVER_TROUBLE = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|MOVED|ASK|TRYAGAIN|BUSY|NOAUTH|WRONGPASS)/

export class RedisLedgerStore implements LedgerStore {
  readonly #client: Redis
  readonly #prefix: string
  readonly #acquire: string
  readonly #settled: string
  #isGathering = false

  /** @param client neither queues nor resends, so that no call runs twice or late @param prefix chart value `redis.keyPrefix` */
  constructor(client: Redis, prefix: string, timing: LedgerTiming = LEDGER_TIMING) {
    this.#client = client
    this.#prefix = prefix
    this.#settled = settledSubjects(prefix)
    this.#acquire = ledgerFunctions(prefix, timing).acquire
  }

  async call(call: LedgerCall): Promise<LedgerReply> {
    this.#gather()
    const { rate, conc, budget, proc, balance } = ledgerKeys(this.#prefix, call.subject)
    const keys = [rate, conc, budget, proc, this.#settled]
    if (call.balance) keys.push(balance)
    try {
      const reply = await this.#client.fcall(this.#acquire, keys.length, ...keys, encodeLedgerCall(call))
      return decodeLedgerReply(call, reply)
    } catch (error) {
      throw refusedOrBroken(error)
    }
  }

  /** Sends the calls of one turn of the event loop in one system call. */
  #gather(): void {
    if (this.#isGathering) return
    const stream = this.#client.stream as Redis['stream'] | undefined // undefined before the first connection
    if (stream === undefined) return
    this.#isGathering = true
    stream.cork()
    setImmediate(() => {
      this.#isGathering = false
      stream.uncork()
    })
  }

  async ping(): Promise<void> {
    await this.#client.ping()
  }
}

/** An error reply concerns one call; every other failure concerns the server. A message may quote arguments, so only its code is kept. */
function refusedOrBroken(error: unknown): Error {
  if (error instanceof LedgerReplyUnreadable) return new LedgerCallRefused(error.message, { cause: error })
  if (!(error instanceof Error) || error.name !== 'ReplyError' || SERVER_TROUBLE.test(error.message)) {
    return error instanceof Error ? error : new Error(String(error))
  }
  const reason = error.message.replace(/,? with args beginning with:.*/s, '').slice(0, 200)
  return new LedgerCallRefused(reason)
}
