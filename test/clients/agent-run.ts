/** Runs an agent once, with one prompt, in a HOME that is new and is removed afterwards. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import type { Agent, AgentSetting } from './agents.ts'
import { TOOL_WORD } from './scripted-replies.ts'

export interface AgentResult {
  /** What a person reads, in one line. */
  readonly shown: string
  /** All that the agent has printed. */
  readonly output: string
  readonly seconds: number
  /** The exit code; undefined if the agent was stopped at the deadline. */
  readonly code: number | undefined
  /** Texts by the names of the files where the agent worked. */
  readonly files: Readonly<Record<string, string>>
}

/**
 * The HOME is outside of this repository: agents read the commits of a repository around them, and a scripted model finds its words in one.
 * @param modules the `node_modules` of the agents
 */
export async function runAgent(
  agent: Agent,
  setting: AgentSetting,
  { modules, prompts, deadlineMs, number }: AgentTask,
): Promise<AgentResult> {
  const home = mkdtempSync(join(tmpdir(), 'headgate-agent-'))
  const start = performance.now()
  try {
    mkdirSync(join(home, 'work'))
    writeFileSync(join(home, 'work', TOOL_WORD), `number: ${number}\n`)
    agent.writeFiles(home, setting)
    const child = spawn(join(modules, agent.program(process.arch)), agent.args(prompts[0] ?? ''), {
      cwd: join(home, 'work'),
      env: { PATH: process.env['PATH'], HOME: home, TERM: 'dumb', NO_COLOR: '1', ...agent.env(setting) },
      stdio: [agent.talk === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: true, // so that its whole process group can be stopped
    })
    let isStopped = false
    const timer = setTimeout(() => {
      isStopped = true
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    }, deadlineMs)
    const [stdout, stderr, [code]] = await Promise.all([outputOf(child, agent, prompts), textOf(child.stderr), once(child, 'close')])
    clearTimeout(timer)
    const shown = agent.shown(stripVTControlCharacters(stdout), stripVTControlCharacters(stderr))
    const output = `${stdout}\n${stderr}`.replaceAll(setting.credential, '<key>')
    const seconds = (performance.now() - start) / 1000
    const files = textsIn(join(home, 'work'))
    return { output, shown: oneLine(shown, setting.credential), seconds, code: isStopped ? undefined : (code as number), files }
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

export interface AgentTask {
  readonly modules: string
  /** All but the first are for an agent that talks. */
  readonly prompts: readonly string[]
  readonly deadlineMs: number
  /** Content of the file that the tool reads. */
  readonly number: number
}

const textOf = async (stream: Readable | null): Promise<string> => (stream === null ? '' : text(stream))

/** The whole standard output. An agent that talks gets each prompt when it has answered the one before. */
async function outputOf({ stdin, stdout }: ChildProcess, { talk }: Agent, prompts: readonly string[]): Promise<string> {
  if (talk === undefined || stdin === null || stdout === null) return textOf(stdout)
  stdin.on('error', () => undefined) // an agent that has ended reads no more; its output says why
  const waiting = [...prompts]
  const ask = (): void => {
    const prompt = waiting.shift()
    if (prompt === undefined) stdin.end()
    else stdin.write(talk.line(prompt))
  }
  ask()
  const lines: string[] = []
  for await (const line of createInterface({ input: stdout })) {
    lines.push(line)
    if (talk.isAnswer(line)) ask()
  }
  return lines.join('\n')
}

function textsIn(folder: string): Record<string, string> {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(files.map(({ name }) => [name, readFileSync(join(folder, name), 'utf8')]))
}

function oneLine(shown: string, credential: string): string {
  return shown.replaceAll(credential, '<key>').split(/\s+/).filter(Boolean).join(' ')
}
