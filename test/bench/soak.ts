/**
 * `make soak`: two gateways of a whole Headgate under load while keys come and go, with the slope of their memory; then the attacks of
 * `make bench`, longer; then limits with a real minute in four gateway processes on one Redis.
 *
 *   SOAK_MINUTES (5), SOAK_ATTACK_SECONDS (120), SOAK_LIMIT_WINDOWS (3): minutes after the first; 0 leaves a section out
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { freePort } from '../support/free-port.ts'
import { LimitsLab } from '../support/limit-processes.ts'
import { propagate } from '../support/propagation.ts'
import { Stack } from '../support/stack.ts'
import { mostRequests, mostTokens, perWindow } from '../support/witnessed-ledger.ts'
import { runLoad } from './compare.ts'
import { benchBody, instantMock, MODELS, Started } from './gateways.ts'
import { type Inside, runInside } from './inside.ts'
import { withControlPlane } from './many-keys.ts'
import { memoryMib, shown, table } from './part.ts'
import { attacksPart } from './requests.ts'

const SAMPLE_EVERY_MS = 2_000
const KEYS_PER_PASS = 10
/** Load of each gateway: far below saturation, or the changes would only measure the queue for the CPU. */
const CONNECTIONS = 8
const PAUSE_MS = 20
/** The first part of a trace shows caches and compiled code filling up; the slope is that of the rest. */
const SETTLING_SHARE = 0.4

const { windowMs } = LEDGER_TIMING
const CLOCK_SHIFTS_MS = [0, 5_000, -5_000, 2_500]
/** 100 decisions a second for each process, three times the limit of one key and 0.8 times that of the other. */
const PER_SECOND = 100 * CLOCK_SHIFTS_MS.length
const LIMIT = Math.floor((PER_SECOND / 3) * (windowMs / 1_000))
const ROOMY = (PER_SECOND / 0.8) * (windowMs / 1_000)
const ROOMY_SECONDS = 75
/** The load goes on for some seconds, so that the last counted minute is a whole one. */
const LAST_SECONDS = 10
/** Above all that admitted requests hold, so that it never refuses, but close enough to be counted like a limit that may refuse. */
const TOKENS = 40 * ROOMY

const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function main({ ip, folder }: Inside): Promise<number> {
  const [minutes, attackSeconds, windows] = [
    setting('SOAK_MINUTES', 5),
    setting('SOAK_ATTACK_SECONDS', 120),
    setting('SOAK_LIMIT_WINDOWS', 3),
  ]
  let failures = minutes === 0 ? 0 : await soak({ ip, folder }, minutes * 60)
  if (attackSeconds > 0) {
    const { lines, isMissed } = await attacksPart({ ip, folder, say }, attackSeconds)
    for (const line of lines) say(line)
    failures += isMissed ? 1 : 0
  }
  if (windows > 0) failures += await limits(windows)
  return failures > 0 ? 1 : 0
}

function setting(name: string, fallback: number): number {
  const value = Number(process.env[name] ?? fallback)
  if (!(value >= 0 && value <= 3_600)) throw new RangeError(`${name}: "${process.env[name]}" is not a number from 0 to 3600`)
  return value
}

async function soak({ ip, folder }: Inside, seconds: number): Promise<number> {
  const port = await freePort()
  const started = new Started(join(folder, 'soak'))
  await started.nginx('mock', instantMock(`${ip}:${port}`))
  try {
    return await withControlPlane({ ip, folder }, 'soak-plane', async (plane) => {
      const modelServer = { url: `http://${ip}:${port}`, port }
      const stack = await Stack.open(
        { name: 'soak', ip, folder, plane, modelServer },
        { gateways: 2, gatewayEnv: { ACCESS_LOG: 'sample' } },
      )
      try {
        return await underLoad(stack, seconds, folder)
      } finally {
        await stack.close()
      }
    })
  } finally {
    await started.stop()
  }
}

async function underLoad(stack: Stack, seconds: number, folder: string): Promise<number> {
  await stack.serveModel(MODELS.plain)
  const [keysFile, bodyFile] = [join(folder, 'keys'), join(folder, 'body.json')]
  writeFileSync(keysFile, await stack.issueKey('load'), { mode: 0o600 })
  writeFileSync(bodyFile, benchBody('plain', 1_500))
  say(`soak: ${seconds} s of load while keys come and go; logs of all parts are in ${folder}`)
  const programs = [...stack.gateways, ...stack.operators].map((program) => ({ program, points: [] as number[] }))
  const timer = setInterval(() => {
    for (const { program, points } of programs) points.push(memoryMib(program.process.pid).rss)
  }, SAMPLE_EVERY_MS)
  const load = { connections: CONNECTIONS, seconds, bodyFile, keysFile, pauseMs: PAUSE_MS }
  const loads = Promise.all(stack.gateways.map(({ url }) => runLoad({ ...load, url: `${url}/v1/chat/completions` })))
  try {
    const deadline = performance.now() + seconds * 1_000
    for (let pass = 0; performance.now() < deadline; pass++) await propagate(stack, KEYS_PER_PASS, `pass-${pass}-`)
    const results = await loads
    const rows = programs.map(({ program, points }) => {
      const settled = points.slice(Math.floor(points.length * SETTLING_SHARE))
      const values = [
        points[0] ?? Number.NaN,
        Math.max(...points),
        points.at(-1) ?? Number.NaN,
        slope(settled) * (60_000 / SAMPLE_EVERY_MS),
      ]
      return [program.spec.pod, ...values.map((value) => value.toFixed(1))]
    })
    for (const line of table([['', 'first MiB', 'max MiB', 'last MiB', 'MiB/min'], ...rows])) say(line)
    const failed = results.reduce((sum, { broken, refused }) => sum + broken + refused, 0)
    say(`  ${results.reduce((sum, { requests }) => sum + requests, 0)} requests, ${failed} not answered with 200`)
    return failed
  } finally {
    clearInterval(timer)
  }
}

/** Slope of the line that fits equidistant values best (least squares), per step. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
  const square = values.reduce((sum, _, i) => sum + (i - middle) ** 2, 0)
  return square === 0 ? 0 : values.reduce((sum, value, i) => sum + (i - middle) * (value - mean), 0) / square
}

async function limits(windows: number): Promise<number> {
  const keys = {
    hot: { limits: { requestsPerMinute: LIMIT } },
    roomy: { limits: { requestsPerMinute: ROOMY, tokensPerMinute: TOKENS } },
  }
  const lab = await LimitsLab.start({ timing: LEDGER_TIMING, clockShiftsMs: CLOCK_SHIFTS_MS, keys })
  try {
    const hot = await loaded(lab, 'hot', (windows + 1) * (windowMs / 1_000) + LAST_SECONDS)
    const roomy = await loaded(lab, 'roomy', ROOMY_SECONDS)
    const used = perWindow(hot.admissions, windowMs, () => 1) / LIMIT
    const atMost: ReadonlyArray<readonly [what: string, value: number, must: number]> = [
      ['most requests in any rolling minute, of the limit', mostRequests(hot.admissions, windowMs) / LIMIT, 1],
      ['unused part of the limit at three times its load', 1 - used, 0.07],
      ['calls to Redis per decision at three times the limit', hot.calls / hot.answers, 0.05],
      ['refusals at 0.8 times the limit', roomy.refused / roomy.answers, 0],
      ['calls to Redis per admission at 0.8 times the limit', roomy.calls / Math.max(1, roomy.admissions.length), 0.05],
      ['most tokens in any rolling minute, of the limit', mostTokens(roomy.admissions, windowMs) / TOKENS, 1],
    ]
    for (const [what, value, must] of atMost) say(`  ${what}: ${shown(value, { must }, '', 4)}`)
    return atMost.filter(([, value, must]) => !(value <= must)).length
  } finally {
    await lab.stop()
  }
}

async function loaded(lab: LimitsLab, uid: 'hot' | 'roomy', seconds: number) {
  say(`limits: ${CLOCK_SHIFTS_MS.length} processes, ${PER_SECOND} calls/s on key "${uid}", ${seconds} s`)
  const before = await lab.storeCalls()
  const [statuses = {}] = await lab.load([{ uid, perSecond: PER_SECOND }], seconds)
  const admissions = lab.admissions().filter((one) => one.uid === uid)
  const answers = Object.values(statuses).reduce((sum, count) => sum + count, 0)
  return { admissions, answers, refused: statuses['429'] ?? 0, calls: (await lab.storeCalls()) - before }
}

process.exitCode = await runInside({ script: import.meta.filename, needs: new Set(['load', 'control-plane']), run: main })
