/** Runs one command with the given files and streams. */
import { stringify } from 'yaml'
import { type Command, parseCommand, UsageError } from './arguments.ts'
import { convert } from './litellm/convert.ts'
import { readKeys, UnreadableFile } from './litellm/read-keys.ts'
import { reportOf } from './litellm/report.ts'

/** The environment of the command. */
export interface Surroundings {
  /** @throws Error if there is no such file */
  readonly readFile: (path: string) => Promise<string>
  readonly readInput: () => Promise<string>
  /** Writes a whole file, or none. */
  readonly writeFile: (path: string, text: string) => Promise<void>
  readonly print: (text: string) => void
  readonly report: (text: string) => void
  /** ms since 1970 */
  readonly now: () => number
}

/** kubectl reads YAML 1.1: an alias `no` must be quoted. */
const AS_KUBECTL_READS = { version: '1.1', lineWidth: 0 } as const

/** Exit codes; the help text explains them. */
const [OK, UNUSABLE, USAGE, SOME_REFUSED] = [0, 1, 2, 3] as const

/** @param args without the program @returns the exit code */
export async function run(args: readonly string[], around: Surroundings): Promise<number> {
  try {
    const command = parseCommand(args)
    if (command.do === 'import-litellm') return await importLiteLLM(command, around)
    around.print(command.text)
    return OK
  } catch (error) {
    if (!(error instanceof UsageError) && !(error instanceof UnreadableFile)) throw error
    around.report(`headgate: ${error.message}\n`)
    return error instanceof UsageError ? USAGE : UNUSABLE
  }
}

async function importLiteLLM(command: Extract<Command, { do: 'import-litellm' }>, around: Surroundings): Promise<number> {
  const { file, output } = command
  const text = await readAll(file, around)
  const conversion = convert(readKeys(text), { ...command, nowMs: around.now() })
  const yaml = conversion.written.map(({ manifest }) => stringify(manifest, AS_KUBECTL_READS)).join('---\n')
  if (output === '-') around.print(yaml)
  else await written(output, yaml, around)
  around.report(reportOf(conversion, output === '-' ? 'standard output' : output))
  return conversion.refused.length > 0 ? SOME_REFUSED : OK
}

async function readAll(file: string, { readFile, readInput }: Surroundings): Promise<string> {
  try {
    return file === '-' ? await readInput() : await readFile(file)
  } catch (error) {
    throw new UnreadableFile(
      `${file === '-' ? 'standard input' : file} cannot be read (${codeOf(error)}); name a file that exists, or - for standard input`,
    )
  }
}

async function written(output: string, yaml: string, { writeFile }: Surroundings): Promise<void> {
  try {
    await writeFile(output, yaml)
  } catch (error) {
    throw new UnreadableFile(`--output ${output} cannot be written (${codeOf(error)}); name a file in a folder that exists`)
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
}
