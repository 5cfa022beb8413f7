/**
 * Pastes the commands of the documents: `make run` in a folder that looks like a clone, then every block that names this file.
 * Only the port differs, because 8080 may be taken. A block runs after the marked blocks above it on its page.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkedStreamsEnv } from '../support/checked-streams.ts'
import { type Command, commandsOf, ROOT } from '../support/documents.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'

const SELF = 'test/contract/document-commands.test.ts'
const PAGES = ['README.md', 'docs/clients.md'] as const
const START = 'make run\n'
const PRINTED_URL = /running at (http:\/\/127\.0\.0\.1:\d+)\/v1/
const READY = /ApiKey demo\/first-key is ready/
const run = promisify(execFile)
const marked = PAGES.flatMap((page) => commandsOf(page)).filter(({ mark }) => mark !== undefined && 'runBy' in mark && mark.runBy === SELF)
const named = (command: Command): Command & { readonly name: string } => ({
  ...command,
  name: `${command.document}: ${command.text.split('\n')[0] ?? ''}`,
})
const shell = marked.filter(({ language, text }) => language === 'sh' && text !== START).map(named)
const programs = marked.filter(({ language }) => language === 'js').map(named)
/** The block that puts the entries of a Secret into the environment. */
const environment = shell.find(({ text }) => text.startsWith('export '))

describe('the commands that the documents give a reader to paste', () => {
  const folder = temporaryFolderOfFile()
  let program: ChildProcess | undefined
  let url = ''

  beforeAll(async () => {
    cloneInto(folder)
    const env = { ...checkedStreamsEnv(), PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: '0', DASHBOARD: '0' }
    program = spawn('bash', ['-c', `exec ${START}`], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    url = await printedBy(program)
  })
  afterAll(async () => {
    if (program?.exitCode === null) {
      const ended = once(program, 'close')
      program.kill('SIGTERM') // make hands on this signal, and not SIGINT
      await ended
    }
  })

  const paste = async (text: string): Promise<string> => {
    const script = `set -euo pipefail\n${text.replaceAll('http://127.0.0.1:8080', url)}`
    const { stdout } = await run('bash', ['-c', script], {
      cwd: folder,
      env: { PATH: process.env['PATH'], ANTHROPIC_API_KEY: 'sk-foreign' },
    })
    return stdout
  }

  test('`make run` of the README starts everything', () => {
    expect(marked.map(({ text }) => text)).toContain(START)
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  })

  test.each(shell)('$name', async (command) => {
    const printed = await paste([...above(command), command.text].join('\n'))
    if (command.text.includes('curl ')) expect(JSON.parse(printed)).toMatchObject({ object: 'chat.completion' })
  })

  test.each(programs)('$name prints an answer for each of its calls', async ({ text }) => {
    const file = join(folder, 'program.mjs')
    writeFileSync(file, text)
    const printed = await paste(`${environment?.text ?? ''}\nexec ${process.execPath} ${file}`)
    const calls = text.match(/console\.log/g) ?? []
    expect(printed.trim().split('\n').filter(Boolean).length).toBeGreaterThanOrEqual(calls.length)
  })

  test('docs/clients.md: with ANTHROPIC_API_KEY set as well, the Anthropic SDK sends that value, and the gateway refuses the call', async () => {
    const program = programs.find(({ text }) => text.includes('new Anthropic()'))
    writeFileSync(join(folder, 'both.mjs'), program?.text ?? '')
    const both = `${environment?.text ?? ''}\nexport ANTHROPIC_API_KEY=sk-foreign\nexec ${process.execPath} both.mjs`
    await expect(paste(both)).rejects.toThrow(/401.*Authentication Error: unknown API key/s)
  })

  /** The blocks above this one on its page, which a reader has pasted into the same shell. */
  function above(command: Command): string[] {
    return shell
      .filter(({ document, start }) => document === command.document && start < command.start)
      .map(({ text }) => `{\n${text}} >&2`)
  }
})

function cloneInto(folder: string): void {
  for (const name of ['Makefile', 'node_modules', 'gateway', 'operator', 'standalone', 'dashboard', 'package.json'])
    symlinkSync(join(ROOT, name), join(folder, name))
  cpSync(join(ROOT, 'package-lock.json'), join(folder, 'package-lock.json'))
  utimesSync(join(folder, 'package-lock.json'), 0, 0) // the packages are installed: make must not install them again
  cpSync(join(ROOT, 'examples'), join(folder, 'examples'), { recursive: true })
}

async function printedBy(program: ChildProcess): Promise<string> {
  let output = ''
  for (const stream of [program.stdout, program.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => void (output += text))
  await waitFor('a key that is ready', () => READY.test(output) || program.exitCode !== null)
  const [, url = ''] = PRINTED_URL.exec(output) ?? []
  if (url === '') throw new Error(`make run has not started:\n${output}`)
  return url
}
