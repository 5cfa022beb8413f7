/**
 * `make bench` measures: CPU, rate and latency of the gateway beside a bare proxy and nginx in one interleaved run; the time until changes
 * reach the gateways, also during storms of new keys; the cost of issuing beside the bare writes; bursts to a real model server; a start
 * with 100,000 keys; silent streams; well-behaved clients during attacks on a gateway; the cost of limits; budgets of 10,000 keys that all
 * spend. `--help` lists the options. Prints a report, and also writes it below .headgate/bench/.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { attacksPart } from './attacks.ts'
import { burstsPart } from './bursts.ts'
import { idleStreamsPart } from './idle-streams.ts'
import { coldStartPart } from './cold-start.ts'
import { startBench } from './contenders.ts'
import { runInside, type Inside } from './inside.ts'
import { describeMachine, type Machine } from './machine.ts'
import { limitsPart } from './limits.ts'
import { measure } from './measure.ts'
import { issuingPart, stormPart, type PartResult } from './operator-parts.ts'
import { HELP, readOptions, type BenchOptions } from './options.ts'
import { KUBELET_LAG_MS, missingControlPlane, withStack, type OwnLabSite } from './own-lab.ts'
import { readOwnCosts, renderCosts } from './profile.ts'
import { measurePropagation, type PropagationRow } from './propagation.ts'
import { spendPart } from './spend.ts'
import { subjectsPart } from './subjects.ts'
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
  return runInside({ script: import.meta.filename, makesLoad: chosen.cells.length > 0, run: (inside) => bench(chosen, inside) })
}

async function bench(options: BenchOptions, inside: Inside): Promise<number> {
  const machine = describeMachine()
  say(`${headOf(machine)}\nlogs of all parts are in ${inside.folder}`)
  const results: { name: string; result: PartResult }[] = []
  for (const { name, run } of chosenParts(options, inside, machine)) {
    const result = await run()
    say(`\n${result.text}\n`)
    results.push({ name, result })
  }
  const data = Object.fromEntries(results.map(({ name, result }) => [name, result.data]))
  const file = keep([headOf(machine), ...results.map(({ result }) => result.text)].join('\n\n'), machine, data)
  say(`kept in ${file}`)
  return results.some(({ result }) => result.isMissed) && unfit(machine) === undefined ? 1 : 0
}

function headOf({ date, commit, cpu, cores, loadAverage }: Machine): string {
  return `bench: ${date}, commit ${commit}, ${cpu}, ${cores} cores, load average ${loadAverage.toFixed(2)} before the start`
}

interface ChosenPart {
  readonly name: string
  readonly run: () => Promise<PartResult>
}

function chosenParts(options: BenchOptions, inside: Inside, machine: Machine): ChosenPart[] {
  const { cells, propagationKeys, storm, stormStopped, issuing, bursts, coldStartKeys, attackSeconds, idleStreams } = options
  const site = { ...inside, modelServer: { url: `http://${inside.ip}:9`, port: 9 } } // no measurement calls the model server: GET /v1/models needs no backend
  const noted = (part: Promise<PartResult>): Promise<PartResult> => part.then((result) => withNote(result, machine))
  const parts: (ChosenPart | undefined)[] = [
    cells.length === 0 ? undefined : { name: 'gateway', run: () => gateway(options, inside, machine) },
    propagationKeys === 0 ? undefined : { name: 'propagation', run: () => propagation(propagationKeys, site, unfit(machine)) },
    storm && { name: 'storm', run: () => noted(stormPart(site, storm, false, say)) },
    stormStopped && { name: 'storm-stopped', run: () => noted(stormPart(site, stormStopped, true, say)) },
    issuing && { name: 'issuing', run: () => noted(issuingPart(site, issuing, say)) },
    coldStartKeys === 0 ? undefined : { name: 'cold-start', run: () => noted(coldStartPart(inside, coldStartKeys, say)) },
    idleStreams === 0 ? undefined : { name: 'idle-streams', run: () => noted(silentStreams(inside, idleStreams)) },
    attackSeconds === 0 ? undefined : { name: 'attacks', run: () => noted(attacksPart(inside, attackSeconds, say)) },
    ...limitParts(options, site, noted),
    bursts === 0 ? undefined : { name: 'bursts', run: () => noted(burstsPart(site, bursts, say)) },
  ]
  return parts.filter((part) => part !== undefined)
}

type Noted = (part: Promise<PartResult>) => Promise<PartResult>

function limitParts(
  { limitRounds: rounds, subjects, spend, seconds }: BenchOptions,
  site: OwnLabSite,
  noted: Noted,
): (ChosenPart | undefined)[] {
  return [
    rounds === 0 ? undefined : { name: 'limits', run: () => noted(limitsPart(site, { rounds, seconds }, say)) },
    subjects === 0 ? undefined : { name: 'subjects', run: () => noted(subjectsPart(subjects)) },
    spend && { name: 'spend', run: () => noted(spendPart(site, spend, say)) },
  ]
}

/** Marks the measurements of a busy machine as not valid. They are printed, and do not fail the run. */
function withNote(result: PartResult, machine: Machine): PartResult {
  const reason = unfit(machine)
  return reason === undefined ? result : { ...result, text: `${result.text}\n  NOT VALID: ${reason}` }
}

async function gateway(options: BenchOptions, inside: Inside, machine: Machine): Promise<PartResult> {
  const { rounds, seconds, warmupSeconds } = options
  const command = `node test/bench/main.ts --rounds ${rounds} --seconds ${seconds} --warmup ${warmupSeconds}`
  const report = { machine, command, result: await compare(options, inside) }
  const { cells, memory } = report.result
  return {
    text: renderReport(report),
    isMissed: verdicts(report).some(({ isMet }) => isMet === false),
    data: { memory, cells: cells.map(({ cell, samples }) => ({ cell, samples: Object.fromEntries(samples) })) },
  }
}

async function silentStreams({ ip, folder }: Inside, streams: number): Promise<PartResult> {
  const running = await startBench({ ip, folder, gatewayBundle: join(folder, 'dist/gateway.js'), gatewayFlags: [] })
  try {
    return await idleStreamsPart(running, streams, say)
  } finally {
    await running.stop()
  }
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

async function propagation(keys: number, site: OwnLabSite, notValid: string | undefined): Promise<PartResult> {
  const missing = missingControlPlane()
  if (missing !== undefined) return { text: `propagation: SKIPPED: ${missing}`, isMissed: false, data: null }
  say(`propagation: ${keys} keys one by one, then ${keys} at once`)
  const options = { gateways: 2, kubeletLagMs: KUBELET_LAG_MS }
  const rows = await withStack(site, options, (stack) => measurePropagation(stack, keys, keys))
  return { text: describePropagation(rows, notValid), isMissed: rows.some(isTooSlow), data: rows }
}

function describePropagation(rows: readonly PropagationRow[], notValid: string | undefined): string {
  return [
    "propagation: from the API server's answer to the change until both gateways answer as expected, each polled every 5 ms; of many keys at",
    '  once those that wait longest, so that these times are upper bounds; for "apply" from the answer until the new value, read by a watch, is admitted.',
    '  Real: etcd, kube-apiserver, kube-controller-manager, Redis, one operator, two gateways, all in processes of their own on this machine.',
    '  Not real: a kubelet and an endpoint controller (the harness mirrors Secrets and publishes the addresses), a network between nodes.',
    `  Must: all <= ${PROPAGATION_MUST_MS} ms; aim: p99 <= ${PROPAGATION_AIM_MS} ms.${notValid === undefined ? '' : ` NOT VALID: ${notValid}.`}`,
    renderPropagation(rows),
  ].join('\n')
}

/** @returns the path of the report */
function keep(text: string, machine: Machine, data: Readonly<Record<string, unknown>>): string {
  const folder = join(ROOT, '.headgate/bench')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${machine.date.replaceAll(/[:.]/g, '-')}.txt`)
  writeFileSync(file, `${text}\n`)
  writeFileSync(file.replace(/txt$/, 'json'), JSON.stringify({ machine, ...data }, null, 1))
  return file
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

process.exitCode = await main(process.argv.slice(2))
