/** The documents of the project and its examples, as tests read them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeBlocks, type CodeBlock } from './markdown-page.ts'

export const ROOT = join(import.meta.dirname, '../..')
const NOT_OURS = new Set(['node_modules', 'dist', '.headgate', '.git', 'coverage'])

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** Every file below a folder, relative to the repository, without built or installed files. */
export function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}

export const DOCUMENTS: readonly string[] = filesBelow('.').filter((path) => path.endsWith('.md'))

export type CommandMark = { readonly runBy: string } | { readonly notRun: string }

export interface Command extends CodeBlock {
  readonly document: string
  readonly mark: CommandMark | undefined
}

/** Languages of blocks that a reader pastes into a terminal or a program. */
const COMMAND_LANGUAGES = new Set(['sh', 'bash', 'js', 'javascript', 'ts', 'python'])

/** Every block of a document that a reader may paste: `<!-- run: test -->` or `<!-- not run: reason -->` stands above the block. */
export function commandsOf(document: string, page: string = read(document)): Command[] {
  return codeBlocks(page)
    .filter(({ language }) => COMMAND_LANGUAGES.has(language))
    .map((block) => ({ ...block, document, mark: markAbove(page.slice(0, block.start)) }))
}

function markAbove(before: string): CommandMark | undefined {
  const [, kind, text = ''] = /<!-- (run|not run): (.+?) -->\s*$/.exec(before) ?? []
  if (kind === undefined) return undefined
  return kind === 'run' ? { runBy: text } : { notRun: text }
}

/** Its shell commands, in order. A command over several lines is one entry. */
export interface Quickstart {
  /** The lines that need kind, which no test has. */
  readonly notRun: readonly string[]
  readonly script: string
  readonly commands: readonly string[]
}

/** @param document path of the README @throws RangeError when the section has not exactly two blocks of shell commands, the first marked as not run */
export function readQuickstart(document: string): Quickstart {
  const [, after = ''] = read(document).split('\n## In a cluster\n')
  const section = after.split(/^#{1,6} /m)[0] ?? ''
  const blocks = codeBlocks(section).filter(({ language }) => language === 'sh')
  const [kind, pasted] = blocks
  if (kind === undefined || pasted === undefined || blocks.length > 2) throw new RangeError(`${blocks.length} blocks of commands, not 2`)
  const marked = /<!-- not run: [^>]*-->\n\n```sh\n([^]*?)```/.exec(section)?.[1]
  if (marked !== kind.text) throw new RangeError('the first block of commands is not the one that is marked as not run')
  return { notRun: commandLines(kind.text), script: pasted.text, commands: commandLines(pasted.text) }
}

function commandLines(block: string): string[] {
  return block
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '')
}
