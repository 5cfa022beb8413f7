/**
 * `make soak`: two gateways of a whole Headgate under sustained load for some minutes, while keys come and go. Prints how the memory of each
 * process changes, how fast changes take effect under that load, and every request that did not end with 200.
 *
 * Then runs the attacks of `make bench`, each for a longer time.
 *
 *   node test/bench/soak.ts [--minutes N] [--attack-seconds N]
 *
 * or SOAK_MINUTES (5) and SOAK_ATTACK_SECONDS (120; 0: no attacks)
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from '../support/free-port.ts'
import { ManagedProcess } from '../support/managed-process.ts'
import type { Stack } from '../support/stack.ts'
import { attacksPart } from './attacks.ts'
import { chatAnswer, chatBody, PLAIN_MODEL } from './fixtures.ts'
import { runInside, skipped, type Inside } from './inside.ts'
import { mockConfig } from './nginx-config.ts'
import { missingControlPlane, withStack } from './own-lab.ts'
import { memory } from './proc.ts'
import { measurePropagation, type PropagationRow } from './propagation.ts'
import { renderPropagation, renderSoak, type MemoryTrace } from './report.ts'
import { runLoad, type LoadResult } from './wrk.ts'

const SAMPLE_EVERY_MS = 2_000
/** Keys of one pass of changes, one by one and at once. */
const KEYS_PER_PASS = 10
/** Load of each gateway: far below saturation, or the changes would only measure the queue for the CPU. */
const CONNECTIONS = 8
const PAUSE_MS = 20

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { minutes: { type: 'string' }, 'attack-seconds': { type: 'string' } } })
  const minutes = Number(values.minutes ?? process.env.SOAK_MINUTES ?? 5)
  if (!(minutes > 0 && minutes <= 24 * 60)) {
    process.stderr.write('minutes: this is no number above 0 and up to 1440; write for example SOAK_MINUTES=5\n')
    return 2
  }
  const attackSeconds = Number(values['attack-seconds'] ?? process.env.SOAK_ATTACK_SECONDS ?? 120)
  if (!(attackSeconds >= 0 && attackSeconds <= 3_600)) {
    process.stderr.write('attack-seconds: this is no number from 0 to 3600; write for example SOAK_ATTACK_SECONDS=120\n')
    return 2
  }
  const run = async (inside: Inside): Promise<number> => (await soak(minutes, inside)) || (await attacks(attackSeconds, inside))
  return runInside({ script: import.meta.filename, makesLoad: true, run })
}

async function soak(minutes: number, { ip, folder }: Inside): Promise<number> {
  const missing = missingControlPlane()
  if (missing !== undefined) return skipped(missing)
  const port = await freePort()
  const mock = await startMock(folder, `${ip}:${port}`)
  try {
    const site = { ip, folder, modelServer: { url: `http://${ip}:${port}`, port } }
    const options = { gateways: 2, gatewayEnv: { ACCESS_LOG: 'sample' } }
    return await withStack(site, options, (stack) => underLoad(stack, minutes * 60, folder))
  } finally {
    await mock.stop()
  }
}

async function attacks(seconds: number, inside: Inside): Promise<number> {
  if (seconds === 0) return 0
  const { text, isMissed } = await attacksPart(inside, seconds, (line) => void process.stdout.write(`${line}\n`))
  process.stdout.write(`${text}\n`)
  return isMissed ? 1 : 0
}

async function underLoad(stack: Stack, seconds: number, folder: string): Promise<number> {
  await stack.serveModel(PLAIN_MODEL)
  const keysFile = join(folder, 'keys')
  const bodyFile = join(folder, 'body.json')
  writeFileSync(keysFile, await stack.issueKey('load'), { mode: 0o600 })
  writeFileSync(bodyFile, chatBody(1_500, false))
  process.stdout.write(`soak: ${seconds} s of load; logs of all parts are in ${folder}\n`)
  const traces = new MemoryTraces(stack)
  const ask = (url: string): Promise<LoadResult> =>
    runLoad({ url: `${url}/v1/chat/completions`, connections: CONNECTIONS, seconds, bodyFile, keysFile, pauseMs: PAUSE_MS })
  const loads = Promise.all(stack.gateways.map(({ url }) => ask(url)))
  try {
    const rows = await changesUntil(performance.now() + seconds * 1000, stack)
    const results = await loads
    process.stdout.write(`${renderSoak(traces.all, results)}\npropagation under this load\n${renderPropagation(rows)}\n`)
    return results.some(({ broken, refused }) => broken + refused > 0) ? 1 : 0
  } finally {
    traces.stop()
  }
}

/** Runs pass after pass until the deadline. @returns the times of each kind of change over all passes */
async function changesUntil(deadline: number, stack: Stack): Promise<PropagationRow[]> {
  const times = new Map<string, readonly number[]>()
  for (let pass = 0; performance.now() < deadline; pass++) {
    for (const row of await measurePropagation(stack, KEYS_PER_PASS, KEYS_PER_PASS, `pass-${pass}-`)) {
      times.set(row.change, [...(times.get(row.change) ?? []), ...row.times])
    }
  }
  return [...times].map(([change, all]) => ({ change, times: all }))
}

/** Records the memory of each Headgate process every two seconds. */
class MemoryTraces {
  readonly all: readonly MemoryTrace[]
  readonly #timer: NodeJS.Timeout

  constructor(stack: Stack) {
    const programs = [...stack.gateways, ...stack.operators]
    const traces = programs.map(({ spec }) => ({ name: spec.pod, points: [] as [seconds: number, rssMb: number][] }))
    const started = performance.now()
    const look = (): void => {
      for (const [i, { process: managed }] of programs.entries()) {
        traces[i]?.points.push([(performance.now() - started) / 1000, memory([managed.pid]).rssMb])
      }
    }
    this.all = traces
    this.#timer = setInterval(look, SAMPLE_EVERY_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

async function startMock(folder: string, listen: string): Promise<ManagedProcess> {
  const prefix = join(folder, 'mock')
  mkdirSync(prefix)
  writeFileSync(join(prefix, 'nginx.conf'), mockConfig(listen, chatAnswer()))
  const argv = ['nginx', '-p', prefix, '-c', join(prefix, 'nginx.conf'), '-e', join(prefix, 'error.log')]
  const mock = new ManagedProcess({ name: 'mock', argv, env: {}, logFile: join(folder, 'mock.log') })
  await mock.start()
  return mock
}

process.exitCode = await main()
