/**
 * The process that loads pages of the dashboard and times them, and does nothing else: in the process that makes the storm, each answer would wait for
 * the storm's own work. It has one request of each page under way at a time, over a connection that stays open, as a proxy in front has it, or over a new one.
 *
 *   fork('dashboard-probe-process.ts', ['<ProbedPage[] as JSON>'])
 */
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PageTimes, ProbedPage } from './dashboard.ts'

/** Pause between an answer and the next request for the same page, ms. */
const PAUSE_MS = 40

const pages = JSON.parse(process.argv[2] ?? '') as readonly ProbedPage[] // written by dashboard.ts
const kept = new Agent({ keepAlive: true })
let times: PageTimes[] = []

/** @returns the time of the whole answer, ms; Infinity for another status than 200 and for no answer */
async function load({ url, cookie, isNewConnection = false }: ProbedPage): Promise<number> {
  const began = performance.now()
  try {
    const sent = get(url, {
      agent: isNewConnection ? false : kept,
      headers: { 'x-forwarded-for': '203.0.113.200', ...(cookie ? { cookie } : {}) },
    })
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode === 200 ? performance.now() - began : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

async function follow(page: ProbedPage, kept: number[]): Promise<void> {
  const mine = times
  while (times === mine) {
    kept.push(await load(page))
    await sleep(PAUSE_MS)
  }
}

let running: Promise<unknown> = Promise.resolve()

process.on('message', (order: 'begin' | 'end') => {
  const last = times
  times = pages.map(({ name }) => ({ name, ms: [] }))
  if (order === 'begin') running = Promise.all(pages.map((page, at) => follow(page, times[at]?.ms ?? [])))
  else void running.then(() => process.send?.(last))
})
process.send?.('ready')
