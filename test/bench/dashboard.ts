/**
 * The dashboard while a thousand people sign up and sign in at the same moment, some of them with mails to one address in mind: how long everybody else
 * waits for a page. A real process with its file and a mail server, over a real API server. Also: time to ready, memory, bytes of the first load.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { FormBrowser, PASSWORD, SECRET, tokenOf } from '../support/dashboard-world.ts'
import { freePorts } from '../support/free-port.ts'
import { ManagedProcess } from '../support/managed-process.ts'
import { MailServer } from '../support/mail-server.ts'
import { waitFor } from '../support/wait-for.ts'
import { withControlPlane } from './many-keys.ts'
import { type BenchSite, type Bound, breaks, memoryMib, type PartResult, quantile, shown, table } from './part.ts'

/** A page of other people beside the storm, ms. */
const PAGE: Bound = { must: 300 }
const PARALLEL = 1_000
const NEW_CONNECTION = '/sign-in, new connection'
const VICTIM = 'victim@fernwood.example'
const KNOWN = 'maya@fernwood.example'

export interface ProbedPage {
  readonly name: string
  readonly url: string
  readonly cookie?: string
  /** Only printed: a connection waits until all that came before are accepted. */
  readonly isNewConnection?: boolean
}

export interface PageTimes {
  readonly name: string
  readonly ms: number[]
}

interface Storm {
  /** Answers by route and status. */
  readonly statuses: Readonly<Record<string, number>>
  readonly seconds: number
  readonly pages: readonly PageTimes[]
}

export async function dashboardPart(site: BenchSite): Promise<PartResult> {
  return await withControlPlane(site, 'dashboard-plane', async (plane) => {
    const mails = await MailServer.start()
    const served = await dashboardProcess(site, { kubeconfig: plane.adminKubeconfig, mails })
    try {
      return await measure(site, served, mails)
    } finally {
      await served.process.stop()
      await mails.stop()
    }
  })
}

export interface Served {
  readonly process: ManagedProcess
  readonly origin: string
  /** Base URL of probes and metrics. */
  readonly health: string
}

/**
 * A process as the image starts it, with the heap that Node takes in the chart's memory limit.
 * @param more settings beside those of its own
 */
export async function dashboardProcess(
  { folder }: BenchSite,
  { kubeconfig, mails, more = {} }: { readonly kubeconfig: string; readonly mails: MailServer; readonly more?: Record<string, string> },
): Promise<Served> {
  const [port = 0, metricsPort = 0] = await freePorts(2)
  const origin = `http://localhost:${port}`
  const env = {
    NODE_ENV: 'production',
    NODE_OPTIONS: '--max-old-space-size=256',
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
    DASHBOARD_URL: origin,
    KUBECONFIG: kubeconfig,
    PUBLIC_URL: 'http://gateway.example',
    DASHBOARD_SECRET: SECRET,
    DATABASE_FILE: join(folder, 'dashboard-bench.db'),
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(mails.port),
    SMTP_SECURITY: 'none',
    MAIL_FROM: 'Headgate <no-reply@example.com>',
    TRUSTED_PROXIES: 'loopback',
    USAGE_URL: 'http://127.0.0.1:9',
    ...more,
  }
  const argv = [process.execPath, '--disable-sigusr1', join(folder, 'dist/dashboard.js')]
  return {
    process: new ManagedProcess({ name: 'dashboard-bench', argv, env, logFile: join(folder, 'dashboard-bench.log') }),
    origin,
    health: `http://127.0.0.1:${metricsPort}`,
  }
}

async function measure(site: BenchSite, served: Served, mails: MailServer): Promise<PartResult> {
  const { origin, process } = served
  const began = performance.now()
  await process.start()
  await untilReady(served)
  const readyMs = performance.now() - began
  const person = await signedUp({ origin, mails }, KNOWN)
  const firstLoad = await firstLoadBytes(person)
  const probes = await startProbes(served, person)
  try {
    const idleMib = memoryMib(process.pid).rss
    const idle = await probes.during(() => new Promise((resolve) => setTimeout(resolve, site.seconds * 1_000)))
    const few = await storm(site, { origin, sources: 5, probes })
    const many = await storm(site, { origin, sources: PARALLEL, probes })
    const { rss, peak } = memoryMib(process.pid)
    const bombs = mails.mails.filter(({ envelope }) => envelope.to.includes(VICTIM)).length
    const lines = [
      `ready ${readyMs.toFixed(0)} ms after the start of the process; first load of a signed-in person ${firstLoad} bytes gzipped`,
      `resident memory ${idleMib.toFixed(0)} MiB idle, ${rss.toFixed(0)} MiB after the storms, ${peak.toFixed(0)} MiB at most; the chart's limit is 512 MiB`,
      `Load, probes, mail server, API server and the dashboard share the cores of this machine.`,
      ...pagesLines('idle', idle),
      ...stormLines(`${PARALLEL} at once from 5 sources, ${wavesOf(site)} times`, few),
      ...stormLines(`${PARALLEL} at once from ${PARALLEL} sources, ${wavesOf(site)} times`, many),
      `mails to the one address that ${wavesOf(site) * 2 * (PARALLEL / 5)} of the requests aimed at: ${bombs}`,
    ]
    return {
      lines,
      isMissed: [few, many].some((one) => isSlow(one.pages)),
      data: { readyMs, firstLoad, idleMib, rss, peak, idle, few, many, bombs },
    }
  } finally {
    probes.stop()
  }
}

export async function untilReady({ health }: Served): Promise<void> {
  await waitFor('the dashboard to be ready', async () => (await fetch(`${health}/readyz`)).ok, { everyMs: 5 })
}

export async function signedUp(
  { origin, mails, source = '203.0.113.1' }: { readonly origin: string; readonly mails: MailServer; readonly source?: string },
  email: string,
): Promise<FormBrowser> {
  const browser = new FormBrowser(origin, { 'x-forwarded-for': source })
  await browser.post('/sign-up', { email, password: PASSWORD })
  const { links } = await mails.nextMail(email)
  const { status } = await browser.post('/verify', { token: tokenOf(links[0] ?? '') })
  if (status !== 303) throw new Error(`the address was not verified: ${status}`)
  return browser
}

/** The page, its scripts and its stylesheets, as a proxy that compresses sends them. */
async function firstLoadBytes(browser: FormBrowser): Promise<number> {
  const { text } = await browser.get('/')
  const paths = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
  const files = await Promise.all([...new Set(paths)].map(async (path) => (await browser.get(path)).text))
  return [text, ...files].reduce((sum, file) => sum + gzipSync(file).byteLength, 0)
}

interface Probes {
  /** @returns the times of all pages while `task` runs */
  during(task: () => Promise<unknown>): Promise<readonly PageTimes[]>
  stop(): void
}

async function startProbes({ origin, health }: Served, { cookies }: FormBrowser): Promise<Probes> {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const pages: ProbedPage[] = [
    { name: NEW_CONNECTION, url: `${origin}/sign-in`, isNewConnection: true },
    ...['/sign-in', '/sign-up'].map((path) => ({ name: path, url: `${origin}${path}` })),
    ...['/', '/settings', '/api/me', '/api/providers', '/api/sessions'].map((path) => ({ name: path, url: `${origin}${path}`, cookie })),
    ...['/livez', '/readyz', '/metrics'].map((path) => ({ name: path, url: `${health}${path}` })),
  ]
  const child: ChildProcess = fork(join(import.meta.dirname, 'dashboard-probe-process.ts'), [JSON.stringify(pages)])
  await once(child, 'message')
  return {
    during: async (task) => {
      child.send('begin')
      await task()
      child.send('end')
      const [times] = (await once(child, 'message')) as [readonly PageTimes[]]
      return times
    },
    stop: () => void child.kill(),
  }
}

const wavesOf = ({ rounds }: BenchSite): number => rounds

async function storm(
  site: BenchSite,
  { origin, sources, probes }: { readonly origin: string; readonly sources: number; readonly probes: Probes },
): Promise<Storm> {
  const statuses: Record<string, number> = {}
  const began = performance.now()
  const pages = await probes.during(async () => {
    for (let wave = 0; wave < wavesOf(site); wave += 1) {
      const answers = Array.from({ length: PARALLEL }, async (_, n) => {
        const { path, fields } = requestOf(n, `${sources}-${wave}`)
        const answer = await post(origin + path, fields, `198.51.${sources > 255 ? n >> 8 : 100}.${(n % sources) & 255}`)
        statuses[`${path} ${answer}`] = (statuses[`${path} ${answer}`] ?? 0) + 1
      })
      await Promise.all(answers)
    }
  })
  return { statuses, seconds: (performance.now() - began) / 1_000, pages }
}

/** Of ten requests: four sign-ups of new people, four sign-ins, and two that would send a mail to the one address. */
function requestOf(n: number, wave: string): { readonly path: string; readonly fields: Readonly<Record<string, string>> } {
  const kind = Math.floor(n / 5) % 10 // each source sends all kinds
  if (kind < 4) return { path: '/sign-up', fields: { email: `person-${wave}-${n}@fernwood.example`, password: PASSWORD } }
  if (kind < 8) return { path: '/sign-in', fields: { email: KNOWN, password: kind < 6 ? PASSWORD : 'a wrong quiet heron' } }
  return kind === 8 ? { path: '/sign-up', fields: { email: VICTIM, password: PASSWORD } } : { path: '/reset', fields: { email: VICTIM } }
}

/** @returns the status, or the error of the connection */
async function post(url: string, fields: Readonly<Record<string, string>>, source: string): Promise<string> {
  const body = new URLSearchParams(fields).toString()
  const headers = {
    origin: new URL(url).origin,
    'content-type': 'application/x-www-form-urlencoded',
    'content-length': body.length,
    'x-forwarded-for': source,
  }
  try {
    const sent = request(url, { method: 'POST', headers, agent: false })
    sent.end(body)
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    answer.resume()
    await once(answer, 'end')
    return String(answer.statusCode)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'error'
  }
}

/** The slowest answer of a hundred; of the page that is worst. */
function isSlow(pages: readonly PageTimes[]): boolean {
  return pages.some(({ name, ms }) => name !== NEW_CONNECTION && breaks(PAGE, quantile(ms, 0.99)))
}

function stormLines(title: string, { statuses, seconds, pages }: Storm): string[] {
  const answers = Object.entries(statuses)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([what, count]) => `${what}: ${count}`)
  return [`${title}, in ${seconds.toFixed(1)} s`, `  answers ${answers.join(', ')}`, ...pagesLines('meanwhile', pages)]
}

function pagesLines(title: string, pages: readonly PageTimes[]): string[] {
  const rows = pages.map(({ name, ms }) => {
    const at = (share: number): string => quantile(ms, share).toFixed(1)
    return [
      name,
      String(ms.length),
      at(0.5),
      at(0.95),
      shown(quantile(ms, 0.99), title === 'idle' || name === NEW_CONNECTION ? {} : PAGE),
      Math.max(...ms).toFixed(1),
    ]
  })
  return table([[`${title}, ms`, 'count', 'p50', 'p95', 'p99', 'max'], ...rows])
}
