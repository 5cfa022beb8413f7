/** The ledger in Redis: one call of a Redis function per ledger call. Limits hold over all processes that use this Redis. */
import { type Cluster, type Redis } from 'ioredis'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { LEDGER_TIMING, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { decodeLedgerReply, encodeLedgerCall, LedgerReplyUnreadable } from '#contract/ledger/ledger-wire.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { clusterSlot } from './cluster-slot.ts'
import { LedgerCallRefused, type LedgerStore } from './ledger-store.ts'

/** A connected client that neither queues nor resends, so that the client itself runs no call twice or late. */
export type LedgerClient = Redis | Cluster

const SINGLE = 'redis'

/** Error replies about the node and not about the call. */
const NODE_TROUBLE = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|MOVED|ASK|TRYAGAIN|BUSY|NOAUTH|WRONGPASS)/

/** Ledger of the gateways of one key prefix. */
export class RedisLedgerStore implements LedgerStore {
  readonly #client: LedgerClient
  readonly #prefix: string
  readonly #acquire: string
  #isGathering = false

  /** @param prefix chart value `redis.keyPrefix` */
  constructor(client: LedgerClient, prefix: string, timing: LedgerTiming = LEDGER_TIMING) {
    this.#client = client
    this.#prefix = prefix
    this.#acquire = ledgerFunctions(prefix, timing).acquire
  }

  async call(call: LedgerCall): Promise<LedgerReply> {
    this.#gather()
    const { rate, conc, budget, use, proc } = ledgerKeys(this.#prefix, call.subject)
    try {
      const reply = await this.#client.fcall(this.#acquire, 5, rate, conc, budget, use, proc, encodeLedgerCall(call))
      return decodeLedgerReply(call, reply)
    } catch (error) {
      throw refusedOrBroken(error)
    }
  }

  /** Sends the calls of one turn of the event loop in one system call. Leaves a Cluster, with its connection to each node, as it is. */
  #gather(): void {
    if (this.#isGathering || isCluster(this.#client)) return
    const stream = this.#client.stream as Redis['stream'] | undefined // undefined before the first connection
    if (stream === undefined) return
    this.#isGathering = true
    stream.cork()
    setImmediate(() => {
      this.#isGathering = false
      stream.uncork()
    })
  }

  /** The primary that serves the subject's slot; a single Redis is one node. */
  nodeOf(subject: string): string {
    const client = this.#client
    if (!isCluster(client)) return SINGLE
    return client.slots[clusterSlot(subject)]?.[0] ?? SINGLE
  }

  async ping(node: string): Promise<void> {
    const client = this.#client
    if (!isCluster(client)) return void (await client.ping())
    const primary = client.nodes('master').find(({ options }) => `${options.host}:${options.port}` === node)
    if (!primary) throw new Error('the node is not part of the cluster now')
    await primary.ping()
  }
}

function isCluster(client: LedgerClient): client is Cluster {
  return client.isCluster
}

/** An error reply concerns one call; every other failure concerns the node. A message may quote arguments, so only its code is kept. */
function refusedOrBroken(error: unknown): Error {
  if (error instanceof LedgerReplyUnreadable) return new LedgerCallRefused(error.message, { cause: error })
  if (!(error instanceof Error) || error.name !== 'ReplyError' || NODE_TROUBLE.test(error.message)) {
    return error instanceof Error ? error : new Error(String(error))
  }
  const reason = error.message.replace(/,? with args beginning with:.*/s, '').slice(0, 200)
  return new LedgerCallRefused(reason)
}
