/**
 * Mails to the people of an account about its money and its keys. The cluster says what there is; the database says what was told. A mail and the
 * note that its reason was told are stored together, so that a crash neither loses a mail nor stores one twice, and of several replicas one stores it.
 */
import type { Account } from '#api/account.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { Credit } from '#api/credit.ts'
import { type Informer, refOf } from '#kube/port.ts'
import { breathe, type Clock, sleep } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import type { Outbox } from '../mail/outbox.ts'
import { balanceStateOf } from './balance-state.ts'
import { bookedAt, creditIdOf } from './credit-news.ts'
import { type AccountFacts, decide, type Decision, newsSinceMs } from './decide.ts'
import { expiresSoon, expiryOf, keyOfId } from './key-news.ts'
import type { Audience, StoredState, Told } from './told.ts'

export interface NotifierDeps {
  readonly caches: {
    readonly accounts: Informer<Account>
    readonly apiKeys: Informer<ApiKey>
    readonly credits: Informer<Credit>
  }
  readonly told: Told
  readonly mail: Pick<Outbox, 'seal' | 'wake'>
  /** Namespace of the keys that people make. */
  readonly namespace: string
  readonly currency: string
  /** A balance below it is low, micro-units; undefined: none is. */
  readonly lowBalance: bigint | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Changes of this time come in one mail, ms. */
const COLLECT_MS = 5_000
/** Pause after a failure, ms. */
const RETRY_MS = 15_000
/** How often time alone is looked at: ends of keys, and days of mails, ms. */
const SCAN_MS = 600_000
/** Ids of Credits are kept for as long as usage is, and so is what a Credit that is created again would tell a second time, ms. */
const KEPT_MS = 400 * 86_400_000
/** A key that the cache of this replica does not have may be a new one, for this time, ms. */
const NEW_KEY_MS = 3_600_000
const CREDITS_OF_ACCOUNT = 'creditsOfAccount'
const KEYS_OF_ACCOUNT = 'keysOfAccount'
const CREDIT_IDS = 'credit '
const KEY_IDS = 'key'

export class Notifier {
  readonly #deps: NotifierDeps
  readonly #stopping = new AbortController()
  /** Accounts that may have news, by name. */
  readonly #changed = new Set<string>()
  /** Accounts whose further news wait for the next day. */
  readonly #putOff = new Set<string>()
  #scannedMs = 0
  #passing: Promise<void> = Promise.resolve()
  #running: Promise<void> = Promise.resolve()

  constructor(deps: NotifierDeps) {
    this.#deps = deps
    const { accounts, apiKeys, credits } = deps.caches
    credits.addIndex(CREDITS_OF_ACCOUNT, accountOfCredit)
    apiKeys.addIndex(KEYS_OF_ACCOUNT, accountOfKey)
    accounts.subscribe((before, after) => this.#onAccount(before, after))
    apiKeys.subscribe((before, after) => this.#onKey(before, after))
    credits.subscribe((before, after) => this.#onCredit(before, after))
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#running, this.#passing])
  }

  /** Looks once at every account that may have news. @throws if the database does not answer: the rest is looked at in the next pass */
  async pass(): Promise<void> {
    const pass = this.#passing.then(() => this.#pass())
    this.#passing = pass.catch(() => undefined)
    await pass
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#deps
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await sleep(clock, COLLECT_MS, signal)
      if (signal.aborted) return
      try {
        await this.pass()
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'mails about accounts could not be stored; they are tried again')
        await sleep(clock, RETRY_MS, signal)
      }
    }
  }

  async #pass(): Promise<void> {
    const { accounts, apiKeys } = this.#deps.caches
    if (!accounts.isSynced('') || !apiKeys.isSynced(this.#deps.namespace)) return // an absent key would count as deleted
    await this.#scan()
    for (const name of [...this.#changed]) {
      if (this.#stopping.signal.aborted) return
      this.#changed.delete(name)
      try {
        if (!(await this.#notify(name))) this.#changed.add(name)
      } catch (error) {
        this.#changed.add(name)
        throw error
      }
      await breathe()
    }
  }

  /** Finds the accounts for which time alone has passed, or which got people. */
  async #scan(): Promise<void> {
    const { clock, caches, told } = this.#deps
    const now = clock.now()
    if (now - this.#scannedMs < SCAN_MS) return
    for (const key of caches.apiKeys.list()) if (expiresSoon(key, now)) this.#changedAll(accountOfKey(key))
    this.#changedAll(this.#putOff)
    await told.sweep(CREDIT_IDS, KEPT_MS)
    this.#changedAll(await told.withoutState())
    this.#scannedMs = now
  }

  #changedAll(names: Iterable<string>): void {
    for (const name of names) this.#changed.add(name)
  }

  /** @returns false if another replica was first: try again */
  async #notify(name: string): Promise<boolean> {
    const { told, caches } = this.#deps
    const account = caches.accounts.get({ namespace: '', name })
    if (account === undefined) return true // deleted, or newer than the cache, which then says so
    const credits = [...caches.credits.byIndex(CREDITS_OF_ACCOUNT, name)]
    const audience = await told.audience(name)
    if (audience === undefined) return this.#dropBooked(credits)
    const facts = this.#factsOf(account, credits, audience)
    const [stored, ids] = [await told.state(name), await this.#toldTo(facts)]
    const decision = decide(facts, new Set(ids.keys()), stored?.state)
    if (!(await this.#store(facts, { decision, stored, forgotten: this.#gone(ids, facts), audience }))) return false
    if (decision.isPutOff) this.#putOff.add(name)
    else this.#putOff.delete(name)
    return decision.isPutOff || this.#dropBooked(credits)
  }

  #factsOf(account: Account, credits: readonly Credit[], { sinceMs }: Audience): AccountFacts {
    const { caches, namespace, currency, lowBalance, clock } = this.#deps
    const { name } = account.metadata
    return {
      account,
      credits,
      keys: [...caches.apiKeys.byIndex(KEYS_OF_ACCOUNT, name)].filter(({ metadata }) => metadata.namespace === namespace),
      sinceMs,
      nowMs: clock.now(),
      currency,
      lowBalance,
    }
  }

  /** Ids of the keys, and those of Credits that could be news. */
  async #toldTo(facts: AccountFacts): Promise<ReadonlyMap<string, number>> {
    const { told } = this.#deps
    const { name } = facts.account.metadata
    const since = newsSinceMs(facts)
    const fresh = facts.credits.filter((credit) => Date.parse(bookedAt(credit) ?? '') >= since).map(creditIdOf)
    const keys = await told.beginningWith(name, KEY_IDS)
    const credits = await told.among(name, fresh)
    return new Map([...keys, ...[...credits].map((id) => [id, 0] as const)])
  }

  /** Ids of keys that were deleted. */
  #gone(ids: ReadonlyMap<string, number>, { keys, nowMs }: AccountFacts): readonly string[] {
    const present = new Set(keys.map(({ metadata }) => metadata.name))
    return [...ids].flatMap(([id, toldMs]) => {
      const key = keyOfId(id)
      return key !== undefined && !present.has(key) && toldMs < nowMs - NEW_KEY_MS ? [id] : []
    })
  }

  async #store(
    { account }: AccountFacts,
    {
      decision,
      stored,
      forgotten,
      audience,
    }: {
      readonly decision: Decision
      readonly stored: StoredState | undefined
      readonly forgotten: readonly string[]
      readonly audience: Audience
    },
  ): Promise<boolean> {
    const { told, mail } = this.#deps
    const { mails, state } = decision
    const isSame = mails.length + decision.told.length + forgotten.length === 0 && state.balance === stored?.state.balance
    if (stored !== undefined && isSame) return true
    const letters = audience.addresses.flatMap((to) => mails.map((one) => mail.seal({ to, ...one })))
    const { name } = account.metadata
    const isStored = await told.store({ account: name, revision: stored?.revision, state, told: decision.told, forgotten, mails: letters })
    if (isStored && letters.length > 0) mail.wake()
    return isStored
  }

  /** An account may have thousands of Credits. Those that were looked at leave the memory. */
  #dropBooked(credits: readonly Credit[]): true {
    for (const credit of credits) if (bookedAt(credit) !== undefined) this.#deps.caches.credits.drop?.(refOf(credit))
    return true
  }

  #onAccount(before: Account | undefined, after: Account | undefined): void {
    if (after === undefined) return
    const { lowBalance } = this.#deps
    if (before === undefined || balanceStateOf(before, lowBalance) !== balanceStateOf(after, lowBalance))
      this.#changed.add(after.metadata.name)
  }

  #onKey(before: ApiKey | undefined, after: ApiKey | undefined): void {
    if (after === undefined) return this.#changedAll(before === undefined ? [] : accountOfKey(before))
    if (before === undefined || before.spec.state !== after.spec.state || expiryOf(before) !== expiryOf(after))
      this.#changedAll(accountOfKey(after))
  }

  #onCredit(before: Credit | undefined, after: Credit | undefined): void {
    if (after !== undefined && bookedAt(after) !== undefined && (before === undefined || bookedAt(before) === undefined))
      this.#changed.add(after.spec.accountRef.name)
  }
}

function accountOfCredit({ spec }: Credit): readonly string[] {
  return [spec.accountRef.name]
}

function accountOfKey({ spec }: ApiKey): readonly string[] {
  return spec.accountRef === undefined ? [] : [spec.accountRef.name]
}
