/** Runs an agent once, with one prompt, in a HOME that is new and is removed afterwards. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import type { Agent, AgentSetting } from './agents.ts'
import { TOOL_WORD } from './scripted-replies.ts'

export interface AgentResult {
  /** What a person reads, in one line. */
  readonly shown: string
  readonly seconds: number
  /** The exit code; undefined if the agent was stopped at the deadline. */
  readonly code: number | undefined
  /** Texts by the names of the files where the agent worked. */
  readonly files: Readonly<Record<string, string>>
}

/** @param modules the `node_modules` of the agents @param folder where the HOME is made */
export async function runAgent(
  agent: Agent,
  setting: AgentSetting,
  { modules, folder, prompt, deadlineMs, number }: AgentTask,
): Promise<AgentResult> {
  const home = mkdtempSync(join(folder, 'home-'))
  const start = performance.now()
  try {
    mkdirSync(join(home, 'work'))
    writeFileSync(join(home, 'work', TOOL_WORD), `number: ${number}\n`)
    agent.writeFiles(home, setting)
    const child = spawn(join(modules, agent.program(process.arch)), agent.args(prompt), {
      cwd: join(home, 'work'),
      env: { PATH: process.env['PATH'], HOME: home, TERM: 'dumb', NO_COLOR: '1', ...agent.env(setting) },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // so that its whole process group can be stopped
    })
    let isStopped = false
    const timer = setTimeout(() => {
      isStopped = true
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    }, deadlineMs)
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    clearTimeout(timer)
    const shown = agent.shown(stripVTControlCharacters(stdout), stripVTControlCharacters(stderr))
    const seconds = (performance.now() - start) / 1000
    const files = textsIn(join(home, 'work'))
    return { shown: oneLine(shown, setting.credential), seconds, code: isStopped ? undefined : (code as number), files }
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

export interface AgentTask {
  readonly modules: string
  readonly folder: string
  readonly prompt: string
  readonly deadlineMs: number
  /** Content of the file that the tool reads. */
  readonly number: number
}

function textsIn(folder: string): Record<string, string> {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(files.map(({ name }) => [name, readFileSync(join(folder, name), 'utf8')]))
}

function oneLine(shown: string, credential: string): string {
  return shown.replaceAll(credential, '<key>').split(/\s+/).filter(Boolean).join(' ')
}
