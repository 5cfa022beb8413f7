/**
 * Changes of period under load: four gateways spend the balance of one account as fast as a real Redis answers, while the operator raises the
 * period, reads, closes the books of the former ones on a real API server and merges. Its clock is the test's, so hours pass at once.
 */
import { randomInt } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Redis } from 'ioredis'
import type { SignedMicros } from '#contract/values/signed-micros.ts'
import { RedisConnection } from '#platform/redis-connection.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import type { LimitSubject } from '../../gateway/limits/ledger.ts'
import type { LedgerBalance } from '#contract/ledger/account-spend.ts'
import { RedisBalanceStore } from '../../operator/books/redis-balance-store.ts'
import { RedisLedgerAdmin } from '../../operator/books/redis-ledger-store.ts'
import { totalSpent } from '../../operator/shards/account-book.ts'
import { openLab } from '../support/lab.ts'
import { LoadedGateway, type LoadedRequest, prepaid } from '../support/loaded-gateway.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { RealCreditBooks, realKubePort } from '../support/real-credit-books.ts'
import type { RedisPart } from '../support/redis-part.ts'
import { SeededRandom } from '../support/seeded-random.ts'
import { waitFor } from '../support/wait-for.ts'

/** `SEED=…` repeats what requests hold and cost. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31))
const GATEWAYS = 4
/** Clients of each gateway. */
const CLIENTS = 8
const FOLDS = 20
/** Time between two changes of period, and a little, ms. */
const HOURS_MS = 7_201_000
/** The keeper's turn, ms. */
const TURN_MS = 1_000

const lab = openLab()
const clock = new ManualClock()
let redis: RedisPart
let operator: RedisConnection
let store: RedisBalanceStore
let real: RealCreditBooks
let gateways: LoadedGateway[]
const clients: Redis[] = []
let name = ''
let runs = 0
let payments = 0

beforeAll(async () => {
  redis = await lab.redis()
  const { REDIS_URL: url, REDIS_USERNAME: username, REDIS_PASSWORD: password } = redis.envFor('operator')
  operator = new RedisConnection({ url, username, password }, 'test', { commandMs: 30_000 })
  await new RedisLedgerAdmin(operator, 'hg').prepare()
  store = new RedisBalanceStore(operator, 'hg')
  await lab.plane.namespace('credit-folds')
  const processes = Array.from({ length: GATEWAYS }, (_, at) => `p${at}`)
  real = new RealCreditBooks({ kube: realKubePort(lab.plane.adminKubeconfig), namespace: 'credit-folds', store, clock, processes })
  await real.start()
})
beforeEach(() => {
  name = `folded-${(runs += 1)}`
  gateways = Array.from({ length: GATEWAYS }, (_, at) => {
    const client = redis.connect('gateway')
    clients.push(client)
    const random = new SeededRandom(SEED + at)
    return new LoadedGateway({ name: `p${at}`, store: new RedisLedgerStore(client, 'hg'), live: GATEWAYS, random })
  })
  real.books.commit({ name, owner: `uid-${name}`, changes: 0, openFrom: 0, closedSpend: 0n, spent: new Map() }, 'create')
  real.keeper.opened(name)
})
afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect()
})
afterAll(async () => {
  await real.stop()
  operator.close()
})

it(`loses no spend, counts none twice and refuses nobody while there is money for all (SEED=${SEED})`, { timeout: 180_000 }, async () => {
  const account = await paid(900_000_000_000)
  const load = start(
    () => account,
    (random) => {
      const hold = 1 + random.below(1_000)
      return { hold, cost: random.below(hold + 1) }
    },
  )
  for (let openFrom = 1; openFrom <= FOLDS; openFrom += 1) await fold(openFrom)
  await load.stop()
  expect(gateways.flatMap(({ refusals }) => refusals)).toEqual([])
  for (const { requests } of gateways) expect(requests).toBeGreaterThan(100)
  await checkRest()
})

it(`spends a balance to the last unit and not one more, however short it is meanwhile (SEED=${SEED})`, { timeout: 180_000 }, async () => {
  let account = await paid(1_000)
  const load = start(
    () => account,
    () => ({ hold: 1, cost: 1 }),
  )
  for (let openFrom = 1; openFrom <= FOLDS; openFrom += 1) {
    await fold(openFrom)
    account = await paid(1_000)
  }
  await waitFor('all credits to be spent', () => settled() >= real.credits.sumOf(name))
  await load.stop()
  expect(settled()).toBe(real.credits.sumOf(name))
  await checkRest()
})

/** Lets all clients of all gateways run. */
function start(account: () => LimitSubject, request: (random: SeededRandom) => LoadedRequest): { stop(): Promise<void> } {
  let isOver = false
  const running = gateways.flatMap((gateway) => Array.from({ length: CLIENTS }, () => gateway.client(account, request, () => isOver)))
  return {
    stop: async () => {
      isOver = true
      await Promise.all(running)
    },
  }
}

/** Hours pass, and the operator closes one more period. Before the next time every gateway has reported what it settled into the former one. */
async function fold(openFrom: number): Promise<void> {
  const isClosed = async (): Promise<boolean> => (await balance()).openFrom === openFrom
  await turnsUntil(`period ${openFrom} to be the first open one`, isClosed, HOURS_MS) // the keeper counts from its own last read
  await waitFor('every gateway to have reported', () => gateways.every((gateway) => gateway.hasReportedBefore(openFrom + 1)))
}

/** @param skipMs time that passes before each turn of the keeper */
async function turnsUntil(what: string, probe: () => Promise<boolean>, skipMs = 0): Promise<void> {
  await waitFor(what, async () => {
    clock.skip(skipMs)
    await clock.advance(TURN_MS)
    return await probe()
  })
}

/** Books one more Credit. @returns the account with the sum of all its Credits, once it may spend them */
async function paid(micros: number): Promise<LimitSubject> {
  const id = `pay-${(payments += 1)}`
  real.credits.book({ id, account: name, micros: micros as SignedMicros, type: 'Payment', time: '', reference: '' }, 'change')
  await turnsUntil('the Credit to be durable and the balance to grant', async () => {
    return real.credits.has(id) && (await balance()).openFrom !== undefined
  })
  return prepaid(ledger(), real.credits.sumOf(name))
}

async function balance(): Promise<LedgerBalance> {
  const [read] = await store.readBalances([ledger()])
  if (typeof read !== 'object') throw new Error(`the balance is ${read}`)
  return read
}

function ledger(): string {
  return real.books.ledgerName(name)
}

function settled(): bigint {
  return gateways.reduce((sum, gateway) => sum + BigInt(gateway.settled), 0n)
}

/** What was settled is what the books and Redis have, and nothing is held. */
async function checkRest(): Promise<void> {
  await Promise.all(gateways.map((gateway) => gateway.ledger.close(30_000)))
  const requests = gateways.reduce((sum, gateway) => sum + gateway.requests, 0)
  process.stdout.write(`${requests} requests of ${GATEWAYS} gateways during ${FOLDS} changes of period\n`)
  expect(gateways.flatMap(({ errors }) => errors)).toEqual([])
  const read = await balance()
  expect(totalSpent({ ...read, openFrom: read.openFrom ?? 0 })).toBe(settled())
  expect([...read.holders]).toEqual([])
  expect(read.closedSpend).toBeGreaterThan(0n)
  await turnsUntil('the books to be durable', () => {
    const book = real.books.durable(name)
    return Promise.resolve(book !== undefined && totalSpent(book) >= settled())
  })
  const book = real.books.durable(name)
  expect([book?.openFrom, book && totalSpent(book)]).toEqual([FOLDS, settled()])
  expect(real.failures.filter((line) => !line.startsWith('spend of accounts has not become durable'))).toEqual([]) // hours pass at once
}
