/**
 * Steady calls from the client pod, by a client that keeps its connections and never retries. Every failed call is a call that a user
 * would lose, so every call is counted.
 */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

export interface LoadReport {
  readonly answered: number
  readonly streams: number
  readonly failed: number
  /** The first failures: `plain http://… sent at 1234 ms, for 56 ms: reason`. */
  readonly failures: readonly string[]
}

export interface SteadyLoad {
  readonly targets: readonly string[]
  readonly model: string
  readonly credential: string
  /** Plain calls per second, over all targets together. */
  readonly perSecond: number
  /** Streams that are open at any time, over all targets together. */
  readonly streams: number
}

/** 70 events, 100 ms apart: about 7 s, longer than a stopping pod waits for the removal of its endpoint. */
const STREAM = 'stub:words=70,gap=100'
const KEPT_FAILURES = 20
/** Far longer than any answer: this limit only catches hangs, ms. */
const ANSWER_WITHIN_MS = 60_000

/** Calls until `signal` aborts and every call that is under way has ended. */
export async function runSteadyLoad(load: SteadyLoad, signal: AbortSignal): Promise<LoadReport> {
  const agent = new Agent({ keepAlive: true })
  const report = { answered: 0, streams: 0, failed: 0, failures: [] as string[] }
  const started = performance.now()
  const open = new Set<Promise<void>>()

  const call = async (target: string, isStream: boolean): Promise<void> => {
    const at = Math.round(performance.now() - started)
    const why = await failureOf(agent, target, load, isStream)
    if (why === undefined) return void (report[isStream ? 'streams' : 'answered'] += 1)
    const took = Math.round(performance.now() - started) - at
    if (++report.failed > KEPT_FAILURES) return
    report.failures.push(`${isStream ? 'stream' : 'plain'} ${target} sent at ${at} ms, for ${took} ms: ${why}`)
  }
  const stream = async (target: string): Promise<void> => {
    while (!signal.aborted) await call(target, true)
  }
  const target = (i: number): string => load.targets[i % load.targets.length] ?? ''

  const streams = Array.from({ length: load.streams }, (_, i) => stream(target(i)))
  for (let i = 0; !signal.aborted; i++) {
    const calling = call(target(i), false).finally(() => open.delete(calling))
    open.add(calling)
    await sleep(Math.max(0, started + ((i + 1) * 1_000) / load.perSecond - performance.now()))
  }
  await Promise.all([...streams, ...open])
  agent.destroy()
  return report
}

function failureOf(agent: Agent, target: string, { model, credential }: SteadyLoad, isStream: boolean): Promise<string | undefined> {
  const body = JSON.stringify({ model, stream: isStream, messages: [{ role: 'user', content: isStream ? STREAM : 'stub:words=3' }] })
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve) => {
    const options = { agent, method: 'POST', headers, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }
    const sent = request(`${target}/v1/chat/completions`, options, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.once('error', (error) => resolve(String(error)))
      answer.once('close', () => resolve(answer.complete ? wrongAnswer(answer.statusCode ?? 0, text, isStream) : 'the answer broke off'))
    })
    sent.once('error', (error) => resolve(String(error)))
    sent.end(body)
  })
}

function wrongAnswer(status: number, text: string, isStream: boolean): string | undefined {
  if (status !== 200) return `${status} ${text.slice(0, 200)}`
  const isWhole = isStream ? text.trimEnd().endsWith('data: [DONE]') : text.includes('"choices"')
  return isWhole ? undefined : `not the whole answer: …${text.slice(-200)}`
}
