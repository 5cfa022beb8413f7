/** Failures of Redis and the operator, and changes of keys with budgets, in an OperatorWorld; and the promises about spend. */
import assert from 'node:assert/strict'
import { apiKeys } from '#api/resources.ts'
import { spendCodec } from '../../operator/shards/spend-entry.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { FakeLedgerStore } from './fake-ledger-store.ts'
import { SHOP } from './objects.ts'
import type { OperatorProcess } from './operator-process.ts'
import { OperatorWorld } from './operator-world.ts'

/** Time without a failure after which everything is durable and restored, s. */
const IDLE_SECONDS = 14
/** The operator's check, after which a new leader drops the spend of keys that were deleted before it led, s. */
const CHECK_SECONDS = 610
/** After this time the remains of deleted keys are removed once more, s. */
const LEFT_OVER_SECONDS = 100

const BUDGET = { name: 'life', amount: '1000', unit: 'Tokens', window: 'Lifetime', onExceeded: 'Block' } as const
const FIELD = 'life:Tokens:Lifetime:0'

/** One event of a story. Keys are `a` and `b`. */
export type SpendHappening =
  | { readonly on: 'spend'; readonly name: string; readonly amount: number }
  | { readonly on: 'forge' | 'damage' | 'delete' | 'edit'; readonly name: string }
  | { readonly on: 'wipe' | 'functions lost' | 'restart' | 'store down' | 'store up' }
  | { readonly on: 'kill'; readonly write: number; readonly when: 'before' | 'after' }
  | { readonly on: 'time passes'; readonly seconds: number }

export class SpendStory {
  readonly #world = new OperatorWorld()
  readonly #ledger = new FakeLedgerStore(() => this.#world.now)
  /** Total spend, by uid. */
  readonly #spent = new Map<string, number>()
  /** The largest durable spend so far, by uid. */
  readonly #durable = new Map<string, number>()
  #process: OperatorProcess | undefined
  #edits = 0

  async begin(): Promise<void> {
    this.#world.ledger = this.#ledger
    this.#process = await this.#world.start()
    for (const key of ['a', 'b']) await this.#world.applyKey({ budgets: [BUDGET] }, key)
    await this.#world.settle()
  }

  async stop(): Promise<void> {
    await this.#world.stop()
  }

  async happens(one: SpendHappening): Promise<void> {
    await this.#act(one)
    for (const [uid, spent] of await this.#durableSpend()) this.#durable.set(uid, Math.max(this.#durable.get(uid) ?? 0, spent))
  }

  /** Ends the failures, and asserts that every promise holds within seconds and that nothing is written afterwards. */
  async end(): Promise<void> {
    this.#setDown(false)
    this.#process?.kill() // a process with a pending kill would not be free of failures
    this.#process = await this.#world.start()
    await this.#turns(IDLE_SECONDS)
    const durable = await this.#durableSpend()
    for (const { metadata } of await this.#world.objects.list(apiKeys, SHOP)) {
      const uid = metadata.uid ?? ''
      const { spent } = this.#ledger.window(uid, FIELD)
      assert.ok(this.#ledger.budgets.has(uid), 'every budget has a seed')
      assert.ok(spent >= (this.#durable.get(uid) ?? 0), `nothing durable is lost: ${spent} of ${this.#durable.get(uid) ?? 0}`)
      assert.ok(spent <= (this.#spent.get(uid) ?? 0), `nothing counts twice: ${spent} for ${this.#spent.get(uid) ?? 0}`)
      assert.equal(durable.get(uid) ?? 0, spent, 'spend is durable')
    }
    await this.#world.pass(CHECK_SECONDS)
    await this.#turns(LEFT_OVER_SECONDS)
    await this.#nothingIsLeft()
    const written = this.#world.writes.length
    await this.#turns(30)
    assert.deepEqual(this.#world.writes.slice(written), [], 'nothing is written without a change')
  }

  async #nothingIsLeft(): Promise<void> {
    const uids = new Set((await this.#world.objects.list(apiKeys, SHOP)).map(({ metadata }) => metadata.uid))
    assert.deepEqual(
      [...this.#ledger.budgets.keys()].filter((uid) => !uids.has(uid)),
      [],
      'Redis holds nothing of deleted keys',
    )
    assert.deepEqual(
      [...(await this.#durableSpend()).keys()].filter((uid) => !uids.has(uid)),
      [],
      'no Secret does',
    )
  }

  async #act(one: SpendHappening): Promise<void> {
    switch (one.on) {
      case 'spend':
        return await this.#spend(one.name, one.amount)
      case 'time passes':
        return await this.#turns(one.seconds)
      case 'kill':
        this.#process?.kill()
        this.#process = await this.#world.start({}, one)
        return
      case 'restart':
        this.#process = await this.#world.restart()
        return
      case 'store down':
      case 'store up':
        return this.#setDown(one.on === 'store down')
      case 'functions lost':
        this.#ledger.isLoaded = false
        return
      case 'wipe':
        this.#world.memory = new MemoryProjection({ now: () => this.#world.now })
        return this.#ledger.wipe()
      default:
        return await this.#actOn(one)
    }
  }

  async #actOn(one: SpendHappening): Promise<void> {
    if (!('name' in one)) return
    const uid = await this.#uidOf(one.name)
    if (uid === undefined) return
    const budgets = this.#ledger.budgets.get(uid)
    if (one.on === 'forge') budgets?.windows.set(FIELD, { spent: 0, unsettled: 0, held: 0 })
    if (one.on === 'damage' && budgets) budgets.isDamaged = true
    if (one.on === 'delete') await this.#world.objects.remove(apiKeys, { namespace: SHOP, name: one.name })
    this.#edits += 1
    if (one.on === 'edit') await this.#world.applyKey({ budgets: [{ ...BUDGET, amount: String(1_000 + this.#edits) }] }, one.name)
  }

  /** Spends as a gateway does, which refuses a key whose budgets have no seed or are damaged. */
  async #spend(key: string, amount: number): Promise<void> {
    const uid = await this.#uidOf(key)
    const budgets = uid === undefined ? undefined : this.#ledger.budgets.get(uid)
    if (uid === undefined || budgets === undefined || budgets.isDamaged || this.#ledger.isDown) return
    this.#ledger.spend(uid, FIELD, this.#ledger.window(uid, FIELD).spent + amount)
    this.#spent.set(uid, (this.#spent.get(uid) ?? 0) + amount)
  }

  #setDown(isDown: boolean): void {
    this.#ledger.isDown = isDown
    this.#world.storeDown = isDown
  }

  async #turns(seconds: number): Promise<void> {
    for (let at = 0; at < seconds; at += 1) await this.#world.pass(1)
  }

  async #uidOf(key: string): Promise<string | undefined> {
    return (await this.#world.objects.get(apiKeys, { namespace: SHOP, name: key }))?.metadata.uid
  }

  async #durableSpend(): Promise<Map<string, number>> {
    const shards = await Promise.all((await this.#world.shards('spend')).map(({ data }) => spendCodec.decode(data ?? {})))
    const entries = shards.flatMap((shard) => shard.entries.flatMap(({ entry }) => entry ?? []))
    return new Map(entries.map(({ uid, spent }) => [uid, spent.get(FIELD) ?? 0]))
  }
}
