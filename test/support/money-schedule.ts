/** Random calls of several processes with one key on a real Redis, which fail in every known way, and what is charged for them in the end. */
import fc from 'fast-check'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { atMost, equal, sum } from './ledger-model.ts'
import { ANSWERS, type MoneyCall, MoneyProcess, type MoneyWorld } from './money-world.ts'

const HOUR_MS = 3_600_000
const PROCESSES = 3
/** Longest time until the store knows everything after a cut, ms. */
const REST_MS = 20_000
/** Longest time until a report leaves, ms. */
const FLUSH_MS = 4_000
/** What a server reports is believed up to this multiple of the most that the call may use. */
const MAX_BELIEVED = 4
/** Most that a process holds ahead of its calls, in micro-units and tokens. */
const FLOAT = 50_000

/** Each name as often as it is likely. */
const ACTIONS = ['call', 'call', 'call', 'call', 'settle', 'settle', 'advance', 'advance', 'link', 'partition', 'kill', 'delete'] as const
const step = fc.record({
  do: fc.constantFrom(...ACTIONS),
  /** A process, or an open call. */
  pick: fc.nat({ max: 8 }),
  answer: fc.constantFrom(...ANSWERS),
  tokens: fc.integer({ min: 1, max: 60 }),
  ms: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 4_000 })),
  fate: fc.constantFrom('works', 'reply lost', 'never arrives'),
  hours: fc.constantFrom(1.5, 2.1),
  isExpired: fc.boolean(),
  isAnswerLost: fc.boolean(),
})
type MoneyStep = typeof step extends fc.Arbitrary<infer T> ? T : never

export const moneySteps: fc.Arbitrary<MoneyStep[]> = fc.array(step, { minLength: 4, maxLength: 14, size: 'max' })

export class MoneySchedule {
  readonly #world: MoneyWorld
  readonly #id: string
  readonly #processes: readonly MoneyProcess[]
  readonly #calls: MoneyCall[] = []
  #keys = 0

  constructor(world: MoneyWorld, id: string) {
    this.#world = world
    this.#id = id
    this.#processes = Array.from({ length: PROCESSES }, (_, at) => new MoneyProcess(world, `${id}-p${at}`))
  }

  get calls(): number {
    return this.#calls.length
  }

  get #uid(): string {
    return `${this.#id}-${this.#keys}`
  }

  async run(steps: readonly MoneyStep[]): Promise<void> {
    await this.#world.redis.seed(this.#uid, 'seed-1')
    for (const one of steps) await this.#step(one)
    await this.#rest()
    await this.#check()
  }

  async #step(one: MoneyStep): Promise<void> {
    const process = this.#processes[one.pick % PROCESSES]
    if (!process?.isAlive) return
    if (one.do === 'call') this.#calls.push(...(await this.#world.call(process, this.#uid, one)))
    if (one.do === 'settle') this.#settle(this.#open[one.pick % Math.max(1, this.#open.length)])
    if (one.do === 'advance') await this.#world.advance(one.ms)
    if (one.do === 'link') process.link.fate = one.fate
    if (one.do === 'partition') await this.#partition(process, one)
    if (one.do === 'kill') this.#kill(process)
    if (one.do === 'delete') await this.#delete()
  }

  /** Charges a call, and checks that the charge is what its server has reported or a marked estimate, and nothing only for no work. */
  #settle(call: MoneyCall | undefined): void {
    if (!call) return
    const { process, answer, tokens, held, outcome, hold } = call
    process.lastCharge = 0
    held.settle(outcome)
    const charge = process.lastCharge
    call.charge = charge
    const isEstimated = Number(outcome.usage?.isEstimated ?? false)
    const { cost } = answer
    if (cost === 'reported') equal(charge, 2 * tokens, 'the charge for reported tokens')
    if (cost === 'nothing') equal(charge, 0, 'the charge for no work')
    if (cost === 'estimated' || cost === 'bounded') atMost(1, charge, 'the charge for work')
    if (cost !== 'bounded') equal(isEstimated, Number(cost === 'estimated'), 'the mark of an estimate')
    atMost(charge, MAX_BELIEVED * hold, 'a charge')
  }

  /** Cuts a process off for so long that the operator takes its holds for spent, and after two hours forgets it. */
  async #partition(process: MoneyProcess, { hours, isExpired, isAnswerLost }: MoneyStep): Promise<void> {
    const { redis, clock } = this.#world
    if (isAnswerLost) {
      process.link.fate = 'reply lost'
      await this.#world.advance(FLUSH_MS)
    }
    process.link.fate = 'never arrives'
    clock.skip(hours * HOUR_MS)
    const { rate, conc, proc } = ledgerKeys('hg', this.#uid)
    if (isExpired) await redis.part.admin.del(rate, conc, proc) // no other process has used the key meanwhile
    await redis.reap(this.#uid, process.name)
    if (hours < 2) return
    await redis.bury(this.#uid, process.name) // its pod no longer serves either
    process.mayCountTwice ||= process.link.isInDoubt
  }

  #kill(process: MoneyProcess): void {
    if (this.#processes.filter(({ isAlive }) => isAlive).length === 1) return
    process.isAlive = false
    process.link.fate = 'never arrives'
  }

  /** The key is deleted while its calls run, and another one is made. */
  async #delete(): Promise<void> {
    await this.#world.redis.part.admin.del(...Object.values(ledgerKeys('hg', this.#uid)))
    for (const { ledger } of this.#processes) ledger.deleted(this.#uid)
    this.#keys += 1
    await this.#world.redis.seed(this.#uid, 'seed-1')
  }

  async #rest(): Promise<void> {
    for (const { link, isAlive } of this.#processes) if (isAlive) link.fate = 'works'
    for (const call of this.#open) this.#settle(call)
    await this.#world.advance(REST_MS)
    for (const { isAlive, name } of this.#processes) if (!isAlive) await this.#world.redis.reap(this.#uid, name)
  }

  async #check(): Promise<void> {
    for (let key = 0; key < this.#keys; key += 1) equal((await this.#world.booked(`${this.#id}-${key}`)).length, 0, 'a deleted key')
    const calls = this.#calls.filter(({ uid }) => uid === this.#uid)
    const [living, killed] = [calls.filter(({ process }) => process.isAlive), calls.filter(({ process }) => !process.isAlive)]
    const ofLiving = sum(living.map(({ charge = 0 }) => charge))
    const ofDoubt = sum(calls.map(({ process, charge = 0 }) => (process.mayCountTwice ? charge : 0)))
    const ofKilled = sum(killed.map(({ charge = 0 }) => charge))
    const least = ofLiving + sum(killed.map(({ charge, hold }) => Math.min(charge ?? hold, hold)))
    const heldByKilled = sum(killed.map(({ hold }) => hold)) + FLOAT * this.#processes.filter(({ isAlive }) => !isAlive).length
    for (const { spent, held, unsettled } of await this.#world.booked(this.#uid)) {
      equal(held, 0, 'holds at rest')
      atMost(ofLiving, spent, 'spend of living processes is never lost')
      atMost(spent, ofLiving + ofDoubt + ofKilled, 'no spend counts twice')
      atMost(least, spent + unsettled, 'what killed processes held counts as spent')
      atMost(unsettled, heldByKilled, 'unsettled')
    }
  }

  get #open(): MoneyCall[] {
    return this.#calls.filter(({ charge, process }) => charge === undefined && process.isAlive)
  }
}
