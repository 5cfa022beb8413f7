/** The kind Credit, as the operator runs it. */
import type { Account } from '#api/account.ts'
import { findCondition } from '#api/condition-list.ts'
import { creditKind } from '#api/credit-kind.ts'
import type { Credit } from '#api/credit.ts'
import { isEventReason } from '#api/event-table.ts'
import { accounts as accountResource, credits as creditResource } from '#api/resources.ts'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import { identityOf, type Informer, isKubeError, type ObjectRef, refOf, uidOf } from '#kube/port.ts'
import { CREDIT_INDEX } from '../../accounts/accounts.ts'
import type { Level } from '../../loop/level.ts'
import type { CreditEntry } from '../../shards/credit-entry.ts'
import { MultiMap } from '../../shards/multi-map.ts'
import { ShardFull } from '../../shards/shard-writer.ts'
import { type Kind, type KindRow, type OperatorContext, type Wake, watch } from '../kind.ts'
import type { BookRefusal, BooksState, Observed } from './observed.ts'
import { statusOf } from './status.ts'
import { type CreditStep, levelOf, nextStep, reportStep } from './steps.ts'

const KIND = creditResource.kind
/** Time after which a refused entry is tried again, ms. */
const BOOK_RETRY_MS = 10_000

export const creditRow: KindRow = { api: creditKind, create: (context) => new Credits(context) }

class Credits implements Kind<Credit, Observed, CreditStep> {
  readonly name = KIND
  readonly informer: Informer<Credit>
  readonly watches
  readonly nextStep = nextStep
  readonly report = reportStep
  readonly #context: OperatorContext
  /** Refused entries, by name. */
  readonly #refused = new Map<string, Omit<BookRefusal, 'retryInMs'> & { readonly untilMs: number }>()
  /** Credits that are in the books and wait for the record of their account, by its name. */
  readonly #unpublished = new MultiMap<string>()

  constructor(context: OperatorContext) {
    const { accounts } = context
    this.#context = context
    this.informer = accounts.creditObjects
    this.watches = [
      watch(this.informer, (before, after) => this.#changed(before, after)),
      watch(accounts.informer, (before, after) => this.#onAccount(before, after)),
    ]
    accounts.credits.onSettled((id, error) => this.#settled(id, error))
    accounts.books.onSettled((name) => this.#onBooks(name))
    accounts.onWritten((name) => this.#enqueueUnpublished(name))
  }

  observe(ref: ObjectRef): Observed | undefined {
    const { accounts, clock, ownWrites, projection } = this.#context
    const cached = this.informer.get(ref)
    if (cached === undefined) return undefined
    const credit = ownWrites.newest(cached)
    const wanted = entryOf(credit)
    if (wanted === undefined || credit.metadata.deletionTimestamp !== undefined) return undefined
    const booked = this.#bookedOf(credit, wanted)
    return {
      credit,
      wanted,
      booked,
      isBooking: accounts.credits.state(wanted.id) === 'Pending',
      isUnreadable: accounts.credits.isUnreadable(wanted.id),
      books: this.#booksFor(credit),
      refusal: this.#refusalOf(wanted.id),
      isPublished: booked === undefined || this.#isPublished(booked),
      storeAvailable: projection.available,
      now: clock.now(),
    }
  }

  async apply(step: CreditStep, observed: Observed): Promise<void> {
    if (step.do === 'book') return this.#context.accounts.credits.book(observed.wanted, step.level)
    await this.#writeStatus(observed)
  }

  waits({ name }: ObjectRef, { booked, isPublished }: Observed): void {
    if (booked !== undefined && !isPublished) this.#unpublished.add(booked.account, name)
  }

  /** A Credit whose outcome is final leaves the memory of this process: an account may have tens of thousands. */
  settled(ref: ObjectRef): boolean {
    this.informer.drop?.(ref)
    return false
  }

  isUnproven({ status }: Credit): boolean {
    return findCondition(status?.conditions, 'Booked')?.status !== 'True'
  }

  /** Reading an entry takes time, so a Booked Credit is not compared again: neither its spec nor its entry ever changes. */
  #bookedOf(credit: Credit, wanted: CreditEntry): CreditEntry | undefined {
    const { credits } = this.#context.accounts
    return !this.isUnproven(credit) && credits.has(wanted.id) ? wanted : credits.entryOf(wanted.id)
  }

  /** Books of a name take Credits whether the Account exists or not. */
  #booksFor({ spec: { accountRef } }: Credit): BooksState {
    const { books, informer } = this.#context.accounts
    const { name, uid } = accountRef
    const isMeant = (owner: string): boolean => uid === undefined || uid === owner
    const book = books.get(name)
    if (book !== undefined) return isMeant(book.owner) ? 'Open' : 'OfAnother'
    if (books.isUnreadable(name) || books.isDamaged(name)) return 'Unreadable'
    const account = informer.get({ namespace: '', name })
    return account !== undefined && isMeant(uidOf(account)) ? 'Unclaimed' : 'Absent'
  }

  /** While more Credits of the account arrive, gateways never have its latest sum, so each Credit is looked up among the published ones first. */
  #isPublished({ account, id }: CreditEntry): boolean {
    const { accounts, projection } = this.#context
    const record = accounts.recordOf(account)
    if (record === undefined || accounts.published.has(record.uid, id)) return true
    return record.balance?.credits === accounts.creditsOf(account) && !projection.isPending('account', record.uid)
  }

  #refusalOf(id: string): BookRefusal | undefined {
    const refused = this.#refused.get(id)
    const retryInMs = (refused?.untilMs ?? 0) - this.#context.clock.monotonic()
    return refused !== undefined && retryInMs > 0 ? { message: refused.message, isFull: refused.isFull, retryInMs } : undefined
  }

  async #writeStatus(observed: Observed): Promise<void> {
    const { kube, ownWrites, recordEvent } = this.#context
    const { credit } = observed
    const status = statusOf(observed)
    ownWrites.remember(await kube.applyStatus(creditResource, { ...credit, metadata: identityOf(credit), status }))
    for (const { type, reason, message } of status.conditions ?? [])
      if (findCondition(credit.status?.conditions, type)?.reason !== reason && isEventReason(reason)) recordEvent(credit, reason, message)
  }

  /** Called when an entry is durable, or refused. The account publishes its sum at the level of the amount. */
  #settled(id: string, error: Error | undefined): void {
    const { accounts, clock, enqueue } = this.#context
    const ref = { namespace: '', name: id }
    const isRefused = error !== undefined && !isKubeError(error, 'Conflict') // after a conflict the Credit is decided again at once
    if (isRefused) {
      this.#refused.set(id, { message: error.message, isFull: error instanceof ShardFull, untilMs: clock.monotonic() + BOOK_RETRY_MS })
      return enqueue(KIND, ref, 'background')
    }
    this.#refused.delete(id)
    const entry = accounts.credits.entryOf(id)
    if (entry) enqueue(accountResource.kind, { namespace: '', name: entry.account }, levelOf(entry))
    enqueue(KIND, ref, 'change')
  }

  /** Credits that wait for books of the name, or for another owner. */
  #onBooks(name: string): void {
    const { accounts, enqueue } = this.#context
    for (const credit of accounts.creditObjects.byIndex(CREDIT_INDEX, name))
      if (this.isUnproven(credit)) enqueue(KIND, refOf(credit), 'change')
  }

  #enqueueUnpublished(account: string): void {
    for (const { ref, level } of this.#takeUnpublished(account)) this.#context.enqueue(KIND, ref, level)
  }

  *#changed(before: Credit | undefined, after: Credit | undefined): Iterable<Wake> {
    if (after === undefined) {
      this.#refused.delete(before?.metadata.name ?? '')
      return
    }
    const level = levelFor(before, after)
    if (level !== undefined) yield { ref: refOf(after), level }
  }

  /** The record of an account that was deleted or replaced need not reach the gateways. A Credit without books says whether its Account exists. */
  *#onAccount(before: Account | undefined, after: Account | undefined): Iterable<Wake> {
    const name = (after ?? before)?.metadata.name
    if (name === undefined || before?.metadata.uid === after?.metadata.uid) return
    yield* this.#takeUnpublished(name)
    const { books, creditObjects } = this.#context.accounts
    if (books.get(name) !== undefined) return
    for (const credit of creditObjects.byIndex(CREDIT_INDEX, name)) yield { ref: refOf(credit), level: 'background' }
  }

  #takeUnpublished(account: string): readonly Wake[] {
    const names = [...this.#unpublished.get(account)]
    for (const name of names) this.#unpublished.delete(account, name)
    return names.map((name) => ({ ref: { namespace: '', name }, level: 'background' }))
  }
}

/** @returns undefined for an amount that the API server would not have admitted */
function entryOf({ metadata, spec }: Credit): CreditEntry | undefined {
  const micros = parseSignedAmount(spec.amount)
  if (micros === undefined) return undefined
  const { accountRef, type, time = metadata.creationTimestamp ?? '', reference = '' } = spec
  return { id: metadata.name, account: accountRef.name, micros, type, time, reference }
}

/** @returns undefined for a change that the operator wrote: the spec never changes */
function levelFor(before: Credit | undefined, after: Credit): Level | undefined {
  if (before?.metadata.uid === after.metadata.uid) return undefined
  const entry = entryOf(after)
  const isBooked = findCondition(after.status?.conditions, 'Booked')?.status === 'True'
  return entry === undefined || isBooked ? 'background' : levelOf(entry)
}
