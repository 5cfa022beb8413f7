/**
 * Customers of the dashboard beside one that makes and edits keys in a loop: how long another one waits for a new key to work and
 * for a revoked key to be refused. Also the list of 200 keys, with 1,000 accounts in the cluster. Real API server, operator, gateways and dashboard.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { atOnce, numbered } from '../support/at-once.ts'
import type { FormBrowser } from '../support/dashboard-world.ts'
import { untilEveryGateway } from '../support/gateway-answers.ts'
import { MailServer } from '../support/mail-server.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'
import { dashboardProcess, type Served, signedUp, untilReady } from './dashboard.ts'
import { clonesOf } from './gateways.ts'
import { GROUP, WIDTH, withControlPlane, withStack } from './many-keys.ts'
import { type BenchSite, type Bound, breaks, median, memoryMib, type PartResult, quantile, shown, tableOf } from './part.ts'

const KEYS = 'headgate-accounts'
/** Median beside the busy customer ÷ median without. */
const RATIO: Bound = { must: 2 }
/** The slowest of a hundred lists of 200 keys, ms. */
const LIST: Bound = { must: 1_000 }
const LISTED = 200
/** Requests of the busy customer under way at once: a script of one person. */
const BUSY_WIDTH = 4
/** Pause between two probes, ms. */
const PAUSE_MS = 100

interface Times {
  /** From the form to the first moment at which every gateway admits the key, ms. */
  readonly issued: number[]
  /** From the form to the first moment at which every gateway refuses it, ms. */
  readonly revoked: number[]
}

interface Busy {
  made: number
  edited: number
  /** Answers beside 200: 409 at the bound of the plan, 429 above the rate at which keys may change. */
  readonly refused: Record<string, number>
}

export async function customersPart(site: BenchSite): Promise<PartResult> {
  const [{ dist }] = clonesOf(site)
  const mails = await MailServer.start()
  try {
    return await withControlPlane(site, 'customers-plane', (plane) =>
      withStack(site, { plane, dist, name: 'customers', namespaces: [KEYS], operatorEnv: { KEYS_NAMESPACE: KEYS } }, async (stack) => {
        const more = { USAGE_URL: stack.operator.usageUrl, DEFAULT_PLAN: 'customers', KEYS_NAMESPACE: KEYS }
        const served = await dashboardProcess(site, { kubeconfig: plane.adminKubeconfig, mails, more })
        try {
          return await measure(site, { stack, served, mails })
        } finally {
          await served.process.stop()
        }
      }),
    )
  } finally {
    await mails.stop()
  }
}

interface Parts {
  readonly stack: Stack
  readonly served: Served
  readonly mails: MailServer
}

async function measure(site: BenchSite, { stack, served, mails }: Parts): Promise<PartResult> {
  const [probes, accounts, most] = site.isQuick ? [3, 20, 210] : [20, 1_000, 1_000]
  await stack.kube.create(planManifest(most))
  await atOnce(numbered('customer', accounts), (name) => stack.kube.create(accountManifest(name)), WIDTH)
  await served.process.start()
  await untilReady(served)
  const person = async (name: string, at: number): Promise<FormBrowser> =>
    await signedUp({ origin: served.origin, mails, source: `203.0.113.${at}` }, `${name}@fernwood.example`)
  const [quiet, busy] = [await person('quiet', 1), await person('busy', 2)]
  await untilPlan(quiet)
  await untilPlan(busy)

  const alone = await probed(stack, quiet, probes)
  const { times: beside, work } = await besideBusy(busy, () => probed(stack, quiet, probes))
  const lister = await person('lister', 3)
  await untilPlan(lister)
  const lists = await listTimes(lister, site.isQuick ? 10 : 100)
  return report({ alone, beside, work, lists, accounts, peakMib: memoryMib(served.process.pid).peak })
}

/** @returns what `probe` measured while a customer makes and edits keys as fast as possible */
async function besideBusy(browser: FormBrowser, probe: () => Promise<Times>): Promise<{ readonly times: Times; readonly work: Busy }> {
  const work: Busy = { made: 0, edited: 0, refused: {} }
  let isOver = false
  const workers = numbered('worker', BUSY_WIDTH)
  const storm = atOnce(workers, async (worker) => await hurry(browser, { worker, work, isOver: () => isOver }), BUSY_WIDTH)
  storm.catch(() => undefined) // awaited below, after the probes
  const times = await probe().finally(() => (isOver = true))
  await storm
  return { times, work }
}

/** @returns how long a list of 200 keys takes, ms */
async function listTimes(browser: FormBrowser, count: number): Promise<readonly number[]> {
  for (let at = 0; at < LISTED; at += 1) await made(browser, `list-${at}`)
  const lists: number[] = []
  for (let at = 0; at < count; at += 1) {
    const began = performance.now()
    const { keys } = (await browser.get('/api/keys')).json()
    lists.push(performance.now() - began)
    if (keys.length !== LISTED) throw new Error(`the list has ${keys.length} keys instead of ${LISTED}`)
  }
  return lists
}

interface Measured {
  readonly alone: Times
  readonly beside: Times
  readonly work: Busy
  readonly lists: readonly number[]
  readonly accounts: number
  readonly peakMib: number
}

function report(measured: Measured): PartResult {
  const { alone, beside, work, lists, accounts, peakMib } = measured
  const rows = (['issued', 'revoked'] as const).map((what) => ({
    what: what === 'issued' ? 'a new key works on every gateway' : 'a revoked key is refused by every gateway',
    count: String(alone[what].length),
    'alone, median ms': median(alone[what]).toFixed(0),
    'beside, median ms': median(beside[what]).toFixed(0),
    'beside, max ms': Math.max(...beside[what]).toFixed(0),
    ratio: shown(median(beside[what]) / median(alone[what]), RATIO, '', 2),
  }))
  const slowest = quantile(lists, 0.99)
  const refusals = Object.entries(work.refused).map(([what, count]) => `${what}: ${count}`)
  const lines = [
    `the busy customer made ${work.made} keys and edited keys ${work.edited} times meanwhile; refused ${refusals.join(', ') || 'nothing'}`,
    ...tableOf(rows),
    `${LISTED} keys listed ${lists.length} times with ${accounts} accounts: median ${median(lists).toFixed(0)} ms, p99 ${shown(slowest, LIST, 'ms', 0)}`,
    `resident memory of the dashboard at most ${peakMib.toFixed(0)} MiB; the chart's limit is 512 MiB`,
  ]
  const isSlow = (['issued', 'revoked'] as const).some((what) => breaks(RATIO, median(beside[what]) / median(alone[what])))
  return { lines, isMissed: isSlow || breaks(LIST, slowest), data: measured }
}

/** A new key, used at once, and revoked at once, again and again. */
async function probed({ gateways }: Stack, browser: FormBrowser, count: number): Promise<Times> {
  const times: Times = { issued: [], revoked: [] }
  for (let at = 0; at < count; at += 1) {
    const name = `probe-${performance.now()}`
    const began = performance.now()
    const { key, value } = await made(browser, name)
    await untilEveryGateway(gateways, value, 200)
    times.issued.push(performance.now() - began)
    const ended = performance.now()
    await expectDone(browser, `/api/keys/${key.id}/revoke`, { name })
    await untilEveryGateway(gateways, value, 401)
    times.revoked.push(performance.now() - ended)
    await sleep(PAUSE_MS)
  }
  return times
}

/** Makes a key and edits one by turns, as fast as the answers come; only edits once the plan allows no more keys. */
async function hurry(
  browser: FormBrowser,
  { worker, work, isOver }: { readonly worker: string; readonly work: Busy; readonly isOver: () => boolean },
): Promise<void> {
  const ids: string[] = []
  for (let at = 0; !isOver(); at += 1) {
    const isFull = Object.keys(work.refused).some((what) => what.startsWith('make 409'))
    const id = ids[at % Math.max(1, ids.length)]
    if ((isFull || at % 2 === 1) && id !== undefined) {
      const { status } = await browser.call('PATCH', `/api/keys/${id}`, form(`${worker}-${at}`, 1 + (at % 1_000)))
      if (status === 200) work.edited += 1
      else work.refused[`edit ${status}`] = (work.refused[`edit ${status}`] ?? 0) + 1
      continue
    }
    const answer = await browser.call('POST', '/api/keys', { ...form(`${worker}-${at}`), attempt: attemptOf() })
    if (answer.status === 200) ids.push(answer.json().key.id)
    if (answer.status === 200) work.made += 1
    else work.refused[`make ${answer.status}`] = (work.refused[`make ${answer.status}`] ?? 0) + 1
  }
}

const form = (name: string, requestsPerMinute?: number): object => ({
  name,
  models: ['*'],
  ...(requestsPerMinute ? { requestsPerMinute } : {}),
})
const attemptOf = (): string => crypto.randomUUID()

async function made(browser: FormBrowser, name: string): Promise<{ readonly key: { readonly id: string }; readonly value: string }> {
  return (await expectDone(browser, '/api/keys', { ...form(name), attempt: attemptOf() })) as {
    readonly key: { readonly id: string }
    readonly value: string
  }
}

/** Waits as long as the dashboard asks. */
async function expectDone(browser: FormBrowser, path: string, body: object): Promise<object> {
  const { status, text, headers } = await browser.call('POST', path, body)
  if (status === 429) {
    await sleep(Number(headers.get('retry-after')) * 1_000)
    return await expectDone(browser, path, body)
  }
  if (status !== 200) throw new Error(`POST ${path} answers ${status}: ${text.slice(0, 200)}`)
  return JSON.parse(text) as object
}

async function untilPlan(browser: FormBrowser): Promise<void> {
  await waitFor('the account and its plan', async () => (await browser.get('/api/plan')).json().most !== undefined)
}

function planManifest(most: number): { apiVersion: string; kind: string; metadata: { name: string }; spec: object } {
  return { apiVersion: GROUP, kind: 'Plan', metadata: { name: 'customers' }, spec: { models: ['*'], maxKeys: most } }
}

function accountManifest(name: string): { apiVersion: string; kind: string; metadata: { name: string }; spec: object } {
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': KEYS } }
  return { apiVersion: GROUP, kind: 'Account', metadata: { name }, spec: { planRef: { name: 'customers' }, namespaces } }
}
