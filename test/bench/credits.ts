/**
 * Credits: what 50,000 Credits cost the operator, and how long another account's first payment and the end of its keys take while
 * 2,000 Credits are applied at once, and while one account is edited in a loop.
 */
import { CHART_HEAP } from '../support/chart-operator.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import type { Stack } from '../support/stack.ts'
import { creditStorm, PAID_MS, type StormReport, stormLines } from './credit-storm.ts'
import { clonesOf } from './gateways.ts'
import { accountManifest, creditManifest, CreditWatch, paymentManifest, planManifest } from './many-credits.ts'
import { WIDTH, withControlPlane, withStack } from './many-keys.ts'
import { type BenchSite, type Bound, breaks, memoryMib, type PartResult, shown, withProgress } from './part.ts'
import { Inspector, type SettledMemory } from './settled-memory.ts'

/** Memory of a Credit in the operator, bytes. */
const CREDIT_BYTES: Bound = { must: 300 }
/** The operator writes two statuses of one account's Credits at a time: those of 50,000 would take most of an hour. */
const ACCOUNTS = numbered('credits-many', 25)

interface Books {
  readonly credits: number
  readonly createdSeconds: number
  readonly bookedSeconds: number
  /** From the start of the operator: until it is ready, and until it has booked one more Credit. */
  readonly readySeconds: number
  readonly worksSeconds: number
  readonly empty: SettledMemory
  readonly full: SettledMemory
  readonly restarted: SettledMemory
  readonly peakMib: number
}

export async function creditsPart(site: BenchSite): Promise<PartResult> {
  const books = await booksOf(site, site.isQuick ? 500 : 50_000)
  site.say(`credits: ${books.credits} Credits are Booked`)
  const storm = await stormOn(site)
  const isFull = breaks(CREDIT_BYTES, bytesOf(books))
  return { lines: [...bookLines(books), ...stormLines(storm)], isMissed: isFull || isMissed(storm), data: { books, storm } }
}

/** Accounts and Credits have no namespace, so each measurement has a control plane of its own. */
async function booksOf(site: BenchSite, credits: number): Promise<Books> {
  const [{ dist }] = clonesOf(site)
  const inspector = await Inspector.at(site.ip)
  const name = 'credits-books'
  const operatorEnv = { NODE_OPTIONS: `${CHART_HEAP.NODE_OPTIONS} ${inspector.option}` }
  return await withControlPlane(site, 'credits-plane', (plane) =>
    withStack(site, { plane, dist, name, namespaces: [name], operatorEnv }, (stack) => fillBooks(site, stack, inspector, credits)),
  )
}

async function stormOn(site: BenchSite): Promise<StormReport> {
  const [{ dist }] = clonesOf(site)
  const name = 'credits-storm'
  return await withControlPlane(site, 'credits-storm-plane', (plane) =>
    withStack(site, { plane, dist, name, namespaces: [name] }, (stack) => creditStorm(site, stack)),
  )
}

const isMissed = ({ paidMs, ratios, admittedAgain }: StormReport): boolean =>
  breaks(PAID_MS, paidMs) || ratios.some(({ bound, value }) => breaks(bound, value)) || admittedAgain > 0

const bytesOf = ({ empty, restarted, credits }: Books): number => (restarted.bytes - empty.bytes) / credits

function bookLines(books: Books): string[] {
  const { credits, createdSeconds, bookedSeconds, readySeconds, worksSeconds, empty, full, restarted, peakMib } = books
  const mib = ({ bytes, rssMib }: SettledMemory): string => `${(bytes / 2 ** 20).toFixed(1)} MiB (resident ${rssMib.toFixed(0)})`
  return [
    `${credits} Credits of ${ACCOUNTS.length} accounts, created by one client over the API server, ${WIDTH} calls in flight`,
    `  created after ${createdSeconds.toFixed(1)} s, all Booked after ${bookedSeconds.toFixed(1)} s`,
    `  memory of the operator after a collection: without Credits ${mib(empty)}, with them ${mib(full)}, after a restart ${mib(restarted)}; peak resident ${peakMib.toFixed(0)} MiB`,
    `  a Credit after a restart ${shown(bytesOf(books), CREDIT_BYTES, 'bytes', 0)}`,
    `  a new start is ready after ${readySeconds.toFixed(1)} s, and has booked another Credit after ${worksSeconds.toFixed(1)} s`,
  ]
}

async function fillBooks(site: BenchSite, stack: Stack, inspector: Inspector, credits: number): Promise<Books> {
  const { kube, operator, namespace } = stack
  const watch = new CreditWatch(kube)
  try {
    await kube.create(planManifest())
    for (const account of ACCOUNTS) {
      await kube.create(accountManifest(account, namespace))
      await kube.create(creditManifest(`first-${account}`, account))
    }
    await watch.until(ACCOUNTS.length)
    await operator.restart()
    const empty = await inspector.settled(operator)
    let created = 0
    let createdSeconds = 0
    const seconds = stopwatch()
    const create = async (payment: string, at: number): Promise<void> => {
      await kube.create(paymentManifest(payment, accountOf(at), at))
      created += 1
    }
    await withProgress(
      site,
      'credits',
      () => ({ created, booked: watch.booked }),
      async () => {
        await atOnce(numbered('payment', credits), create, WIDTH)
        createdSeconds = seconds()
        await watch.until(ACCOUNTS.length + credits)
      },
    )
    const bookedSeconds = seconds()
    const full = await inspector.settled(operator)
    return { credits, createdSeconds, bookedSeconds, empty, full, ...(await restart(stack, inspector, watch)) }
  } finally {
    watch.stop()
  }
}

async function restart(
  { kube, operator }: Stack,
  inspector: Inspector,
  watch: CreditWatch,
): Promise<Pick<Books, 'readySeconds' | 'worksSeconds' | 'restarted' | 'peakMib'>> {
  await operator.stop()
  const before = watch.booked
  const seconds = stopwatch()
  await operator.start()
  const readySeconds = seconds()
  await kube.create(creditManifest('last', accountOf(0)))
  await watch.until(before + 1)
  const worksSeconds = seconds()
  const restarted = await inspector.settled(operator)
  return { readySeconds, worksSeconds, restarted, peakMib: memoryMib(operator.process.pid).peak }
}

function accountOf(at: number): string {
  return ACCOUNTS[at % ACCOUNTS.length] ?? ''
}

/** @returns seconds since now */
function stopwatch(): () => number {
  const started = performance.now()
  return () => (performance.now() - started) / 1_000
}
