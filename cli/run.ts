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
  const input = file === '-' ? 'standard input' : file
  const read = (): Promise<string> => (file === '-' ? around.readInput() : around.readFile(file))
  const text = await done(read, `${input} cannot be read`, 'name a file that exists, or - for standard input')
  const conversion = convert(readKeys(text), { ...command, nowMs: around.now() })
  const yaml = conversion.written.map(({ manifest }) => stringify(manifest, AS_KUBECTL_READS)).join('---\n')
  if (output === '-') around.print(yaml)
  else await done(() => around.writeFile(output, yaml), `--output ${output} cannot be written`, 'name a file in a folder that exists')
  around.report(reportOf(conversion, output === '-' ? 'standard output' : output))
  return conversion.refused.length > 0 ? SOME_REFUSED : OK
}

/** @throws UnreadableFile if the work fails */
async function done<T>(work: () => Promise<T>, problem: string, remedy: string): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
    throw new UnreadableFile(`${problem} (${code}); ${remedy}`)
  }
}
