/** Runs kubectl: in a cluster, a command acts with the rights of its user. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** Longest answer, bytes; an object has at most 1.5 MiB. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024

/** What kubectl printed, or the last line of its error. */
export type KubectlAnswer = { readonly isDone: true; readonly output: string } | { readonly isDone: false; readonly why: string }

/** @param input standard input of kubectl */
export type Kubectl = (args: readonly string[], input?: string) => Promise<KubectlAnswer>

/** Never rejects. */
export async function runKubectl(args: readonly string[], input = ''): Promise<KubectlAnswer> {
  try {
    const running = run('kubectl', [...args], { maxBuffer: MAX_OUTPUT_BYTES })
    running.child.stdin?.on('error', () => undefined) // kubectl may end before it has read its input
    running.child.stdin?.end(input)
    return { isDone: true, output: (await running).stdout }
  } catch (error) {
    return { isDone: false, why: lastLine(error) }
  }
}

/** The options that name a context of kubectl. */
export function contextArgs(context: string | undefined): readonly string[] {
  return context === undefined ? [] : ['--context', context]
}

/** The last line that a failed kubectl wrote. */
export function lastLine(error: unknown): string {
  const text = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error)
  return text.trim().split('\n').at(-1) || 'kubectl cannot be run; install it, or use --url or --local where the command has it'
}
