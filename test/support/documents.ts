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
