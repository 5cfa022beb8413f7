/**
 * `make bench`: CPU, rate and latency of the gateway beside a bare proxy and nginx in one interleaved run, and how fast changes reach the
 * gateways. `--help` lists the options. Prints a report and keeps it below .headgate/bench/.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startBench } from './contenders.ts'
import { runInside, type Inside } from './inside.ts'
import { describeMachine } from './machine.ts'
import { measure } from './measure.ts'
import { HELP, readOptions, type BenchOptions } from './options.ts'
import { missingControlPlane, withStack } from './own-lab.ts'
import { readOwnCosts, renderCosts } from './profile.ts'
import { measurePropagation, type PropagationRow } from './propagation.ts'
import {
  isTooSlow,
  PROPAGATION_AIM_MS,
  PROPAGATION_MUST_MS,
  renderPropagation,
  renderReport,
  unfit,
  verdicts,
  type Report,
} from './report.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The mirror of the mounted Secrets runs in this process: at each change it would take the processor from what is measured. A kubelet takes a minute. */
const KUBELET_LAG_MS = 5_000
/** Lines of a printed profile. */
const PROFILE_ROWS = 45

async function main(args: readonly string[]): Promise<number> {
  let options: BenchOptions | 'help'
  try {
    options = readOptions(args, process.env)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return 2
  }
  if (options === 'help') {
    process.stdout.write(HELP)
    return 0
  }
  const chosen = options
  return runInside(import.meta.filename, (inside) => bench(chosen, inside))
}

async function bench(options: BenchOptions, inside: Inside): Promise<number> {
  const machine = describeMachine()
  say(`bench: logs of all parts are in ${inside.folder}`)
  const texts: string[] = []
  let report: Report | undefined
  if (options.cells.length > 0) {
    const { rounds, seconds, warmupSeconds } = options
    const command = `node test/bench/main.ts --rounds ${rounds} --seconds ${seconds} --warmup ${warmupSeconds}`
    report = { machine, command, result: await compare(options, inside) }
    texts.push(renderReport(report))
  }
  const changes = options.propagationKeys > 0 ? await propagation(options.propagationKeys, inside) : undefined
  if (changes) texts.push(changes.skipped ?? describePropagation(changes.rows, unfit(machine)))
  const text = texts.join('\n\n')
  const file = keep(text, machine.date, report)
  say(`\n${text}\n\nkept in ${file}`)
  const isMissed = report !== undefined && verdicts(report).some(({ isMet }) => isMet === false)
  const isSlow = unfit(machine) === undefined && changes?.rows.some(isTooSlow) === true
  return isMissed || isSlow ? 1 : 0
}

async function compare(options: BenchOptions, { ip, folder }: Inside): Promise<Report['result']> {
  const gatewayBundle = join(folder, 'dist/gateway.js')
  const profiles = join(folder, 'profile')
  const gatewayFlags = options.profile ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : []
  const running = await startBench({ ip, folder, gatewayBundle, gatewayFlags })
  try {
    return await measure(running, { ...options, progress: say })
  } finally {
    await running.stop()
    if (options.profile) say(renderCosts(readOwnCosts(profiles, gatewayBundle, ROOT), PROFILE_ROWS))
  }
}

async function propagation(keys: number, { ip, folder }: Inside): Promise<{ rows: readonly PropagationRow[]; skipped?: string }> {
  const missing = missingControlPlane()
  if (missing !== undefined) return { rows: [], skipped: `propagation: SKIPPED: ${missing}` }
  say(`propagation: ${keys} keys one by one, then ${keys} at once`)
  const site = { ip, folder, modelServer: { url: `http://${ip}:9`, port: 9 } } // nobody is asked: GET /v1/models needs no backend
  const options = { gateways: 2, kubeletLagMs: KUBELET_LAG_MS }
  return { rows: await withStack(site, options, (stack) => measurePropagation(stack, keys, keys)) }
}

function describePropagation(rows: readonly PropagationRow[], notJudged: string | undefined): string {
  return [
    "propagation: from the API server's answer to the change until both gateways answer as expected, each polled every 5 ms; of many keys at",
    '  once those that wait longest, so that these times are upper bounds; for "apply" from the answer until the new value, read by a watch, is admitted.',
    '  Real: etcd, kube-apiserver, kube-controller-manager, Redis, one operator, two gateways, all in processes of their own on this machine.',
    '  Not real: a kubelet and an endpoint controller (the harness mirrors Secrets and publishes the addresses), a network between nodes.',
    `  Must: all <= ${PROPAGATION_MUST_MS} ms; aim: p99 <= ${PROPAGATION_AIM_MS} ms.${notJudged === undefined ? '' : ` NOT JUDGED: ${notJudged}.`}`,
    renderPropagation(rows),
  ].join('\n')
}

/** @returns where the report is */
function keep(text: string, date: string, report: Report | undefined): string {
  const folder = join(ROOT, '.headgate/bench')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${date.replaceAll(/[:.]/g, '-')}.txt`)
  writeFileSync(file, `${text}\n`)
  const cells = report?.result.cells.map(({ cell, samples }) => ({ cell, samples: Object.fromEntries(samples) })) ?? []
  writeFileSync(file.replace(/txt$/, 'json'), JSON.stringify({ machine: report?.machine, memory: report?.result.memory, cells }, null, 1))
  return file
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

process.exitCode = await main(process.argv.slice(2))
