/** The section "In a cluster" of the README: the commands that a reader pastes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeBlocks } from './markdown-page.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Its shell commands, in order. A command over several lines is one entry. */
export interface Quickstart {
  /** The lines that need kind, which no test has. */
  readonly notRun: readonly string[]
  readonly script: string
  readonly commands: readonly string[]
}

/** @param document path of the README @throws RangeError when the section has not exactly two blocks of shell commands, the first marked as not run */
export function readQuickstart(document: string): Quickstart {
  const page = readFileSync(join(ROOT, document), 'utf8')
  const [, after = ''] = page.split('\n## In a cluster\n')
  const section = after.split(/^#{1,6} /m)[0] ?? ''
  const blocks = codeBlocks(section).filter(({ language }) => language === 'sh')
  const [kind, pasted] = blocks
  if (kind === undefined || pasted === undefined || blocks.length > 2) throw new RangeError(`${blocks.length} blocks of commands, not 2`)
  const marked = /<!-- not run: [^>]*-->\n\n```sh\n([^]*?)```/.exec(section)?.[1]
  if (marked !== kind.text) throw new RangeError('the first block of commands is not the one that is marked as not run')
  return { notRun: commandsOf(kind.text), script: pasted.text, commands: commandsOf(pasted.text) }
}

function commandsOf(block: string): string[] {
  return block
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '')
}
