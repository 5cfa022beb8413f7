/** Prepares parts with a script, then starts the calling program again in a network namespace of its own, where it reaches nothing but loopback. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
/** Exit code of a script that prepares parts, if this machine cannot run them. */
const CANNOT_RUN = 3
/** The last line of the script, for the program inside of the namespace. */
const PREPARED = 'HEADGATE_PREPARED'

export interface PreparedProgram {
  readonly script: string
  readonly args: readonly string[]
  /** Prepares the parts; its last line is what `run` gets. */
  readonly prepare: string
  readonly run: (prepared: string) => Promise<number>
}

/** @returns the exit code; 0 on a machine that cannot run the parts, after a line `SKIPPED: reason` */
export async function runPrepared({ script, args, prepare, run }: PreparedProgram): Promise<number> {
  const prepared = process.env[PREPARED]
  if (prepared !== undefined) return run(prepared)
  const scratch = mkdtempSync(join(tmpdir(), 'headgate-prepared-'))
  try {
    const skipFile = join(scratch, 'skip')
    let output = ''
    const code = await start(['bash', prepare], { HEADGATE_SKIP_FILE: skipFile }, (text) => (output += text))
    if (code === CANNOT_RUN && existsSync(skipFile)) process.stdout.write(`SKIPPED: ${readFileSync(skipFile, 'utf8').trim()}\n`)
    if (code !== 0) return code === CANNOT_RUN ? 0 : 1
    const inside = ['bash', join(ROOT, 'test/parts/in-netns.sh'), process.execPath, script, ...args]
    return await start(inside, { [PREPARED]: output.trimEnd().split('\n').at(-1) ?? '' })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Runs a command with our terminal. @param onOutput gets the standard output, too */
function start(argv: readonly string[], env: Readonly<Record<string, string>>, onOutput?: (text: string) => void): Promise<number> {
  const [command = '', ...args] = argv
  const stdout = onOutput === undefined ? 'inherit' : 'pipe'
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', stdout, 'inherit'], env: { ...process.env, ...env } })
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text)
    onOutput?.(text)
  })
  const forward = (signal: NodeJS.Signals) => child.kill(signal)
  process.on('SIGTERM', forward).on('SIGINT', () => undefined) // the terminal sends SIGINT to the whole group
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      process.off('SIGTERM', forward)
      resolve(code ?? 1)
    })
  })
}
