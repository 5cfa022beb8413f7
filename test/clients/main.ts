/**
 * `make agents`: Claude Code, Codex and opencode run prompts through a gateway: requests on the wire, and the text that a person reads. Prints a
 * table, and ends with exit code 1 if a promise is broken. README.md says more.
 *
 *   node test/clients/main.ts [parts of names of agents and cases]
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withCheckedStreams } from '../support/checked-streams.ts'
import { runPrepared } from '../support/prepared-namespace.ts'
import type { AgentCase, AgentOutcome } from './agent-case.ts'
import { AGENT_CASES, cellOf } from './agent-cases.ts'
import { runAgent } from './agent-run.ts'
import { AgentWorld } from './agent-world.ts'
import { type Agent, type AgentSetting, AGENTS } from './agents.ts'
import { LlamaServers } from './llama-servers.ts'

const ROOT = join(import.meta.dirname, '../..')
const DIRECT_CREDENTIAL = 'none-needed'
const MS = 1_000

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** One row of the table: the cells by agent. */
interface Row {
  readonly name: string
  readonly cells: Map<string, string>
}

interface Order {
  readonly modules: string
  readonly folder: string
  readonly llamaHome: string
  readonly words: readonly string[]
}

interface Run extends Omit<Order, 'llamaHome'> {
  readonly llama: LlamaServers
  readonly rows: Row[]
  readonly failures: string[]
}

async function main(words: readonly string[], prepared: string): Promise<number> {
  const [modules = '', llamaHome = ''] = prepared.split(' ')
  const folder = join(ROOT, '.headgate/agents', new Date().toISOString().replaceAll(/[:.]/g, '-'))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const run = (): Promise<number> => runAgents({ modules, llamaHome, folder, words })
  const code = await withCheckedStreams({ folder, mustHaveSome: words.length === 0, run })
  say(`agents: logs and the table are in ${folder}`)
  return code
}

async function runAgents({ modules, llamaHome, folder, words }: Order): Promise<number> {
  const llama = await LlamaServers.start(llamaHome, folder)
  const rows = AGENT_CASES.flatMap(({ name, alsoDirect }) => [name, ...(alsoDirect === true ? [directly(name)] : [])])
  const run: Run = { modules, folder, llama, words, rows: rows.map((name) => ({ name, cells: new Map() })), failures: [] }
  try {
    await Promise.all(AGENTS.map((agent) => runCases(run, agent)))
  } finally {
    await llama.stop()
  }
  const lines = [...table(run), '', ...run.failures.map((line) => `FAILED: ${line}`), `agents: ${run.failures.length} promises broken`]
  for (const line of ['', ...lines]) say(line)
  writeFileSync(join(folder, 'table.md'), `${lines.join('\n')}\n`)
  return run.failures.length > 0 ? 1 : 0
}

const directly = (name: string): string => `${name}, without a gateway`

const isChosen = (words: readonly string[], agent: Agent, one: AgentCase): boolean =>
  words.every((word) => `${agent.name} ${one.name}`.toLowerCase().includes(word.toLowerCase()))

async function runCases(run: Run, agent: Agent): Promise<void> {
  const cases = AGENT_CASES.filter((one) => (one.only ?? [agent.name]).includes(agent.name) && isChosen(run.words, agent, one))
  if (cases.length === 0) return
  if (!existsSync(join(run.modules, agent.program(process.arch)))) return say(`SKIPPED: ${agent.name}: no program for ${process.arch}`)
  const world = await AgentWorld.start(join(run.folder, agent.name.replaceAll(' ', '-')), run.llama)
  try {
    for (const one of cases) {
      await runCase(run, world, agent, one, false)
      if (one.alsoDirect === true) await runCase(run, world, agent, one, true)
    }
  } finally {
    await world.stop()
  }
}

// oxlint-disable-next-line max-params -- the flag belongs to the case
async function runCase(run: Run, world: AgentWorld, agent: Agent, one: AgentCase, isDirect: boolean): Promise<void> {
  const name = isDirect ? directly(one.name) : one.name
  const setting = isDirect ? directSetting(world, one) : await throughSetting(world, one)
  await world.takeWire()
  world.takeSeen()
  const number = Math.floor(Math.random() * 1e6)
  const task = {
    modules: run.modules,
    prompts: [one.prompt, ...(one.more ?? [])],
    deadlineMs: one.deadlineSeconds * MS,
    number,
  }
  const result = await runAgent(one.as ?? agent, setting, task)
  const outcome: AgentOutcome = { ...result, agent: agent.name, number, wire: await world.takeWire(), ...world.takeSeen() }
  writeFileSync(join(run.folder, `${agent.name}, ${name}.log`.replaceAll(/[ /`]/g, '-')), result.output)
  const cell = cellOf(outcome, one, isDirect)
  const wrong = one.wrong(outcome)
  run.rows.find((row) => row.name === name)?.cells.set(agent.name, cell)
  say(`${agent.name}: ${name}: ${cell}`)
  if (wrong !== undefined) run.failures.push(`${agent.name}: ${name}: ${wrong}`)
}

async function throughSetting(world: AgentWorld, { key, model }: AgentCase): Promise<AgentSetting> {
  return { url: await world.url(), credential: await world.credential(key), model }
}

function directSetting(world: AgentWorld, { model }: AgentCase): AgentSetting {
  return { url: world.serverOf(model), credential: DIRECT_CREDENTIAL, model }
}

/** The table in Markdown, as docs/clients.md has it. */
function table({ modules, rows }: Run): string[] {
  const version = ({ packageName }: Agent): string =>
    (JSON.parse(readFileSync(join(modules, packageName, 'package.json'), 'utf8')) as { readonly version: string }).version
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const agents = AGENTS.filter((agent) => rows.some(({ cells }) => cells.has(agent.name)))
  const head = ['case', ...agents.map((agent) => `${agent.name} ${version(agent)}`)]
  const run = rows.filter(({ cells }) => cells.size > 0)
  return [
    line(head),
    line(head.map(() => '---')),
    ...run.map(({ name, cells }) => line([name, ...agents.map((agent) => cells.get(agent.name) ?? '')])),
  ]
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  const prepare = join(import.meta.dirname, 'prepare.sh')
  process.exitCode = await runPrepared({ script: import.meta.filename, args, prepare, run: (prepared) => main(args, prepared) })
}
