/** `make status`: the tables that `kubectl get apikeys,servedmodels -A` prints in a cluster, from the state of `make run`. */
import { processEnv } from '#platform/settings.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import { plainLines } from '#contract/values/plain-text.ts'
import { API_KINDS } from '#api/kinds.ts'
import { loadStatusConfig } from './config.ts'
import { tableOf } from './printed-table.ts'
import type { StoredObject } from './object-store.ts'
import { readStoredStatus, type RunRecord, STATE_FOLDER } from './state-folder.ts'

const ANSWER_WITHIN_MS = 2_000

/** @throws Misconfigured without a state to show */
async function statusText(manifests: string | undefined): Promise<string> {
  const stored = readStoredStatus(STATE_FOLDER)
  if (stored === undefined)
    throw new Misconfigured(`${STATE_FOLDER}: there is no state in this folder; start Headgate with \`make run\` first`)
  return `${await headline(stored.run)}\n${otherFolder(stored.run, manifests)}\n${tables(stored.objects)}`
}

async function headline(run: RunRecord | undefined): Promise<string> {
  if (run === undefined) return '`make run` is not running. This is the state that it left.'
  if (run.endedMs !== undefined) return `\`make run\` is not running. This is the state when it stopped, ${timeOf(run.endedMs)}.`
  if (!isAlive(run.pid))
    return `\`make run\` is not running: the run of ${timeOf(run.startedMs)} was killed. This is the state that it left.`
  const answers = await fetch(`${run.baseURL}/healthz`, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }).then(
    ({ ok }) => ok,
    () => false,
  )
  if (!answers) return `\`make run\` (process ${run.pid}) does not answer at ${run.baseURL}. This is the state that it wrote last.`
  return `\`make run\` (process ${run.pid}) is running at ${run.baseURL}/v1 with the manifests in ${run.manifests}.`
}

/** A note if MANIFESTS has changed, because there is one state per clone. */
function otherFolder(run: RunRecord | undefined, manifests: string | undefined): string {
  if (run === undefined || manifests === undefined || manifests === run.manifests) return ''
  return `MANIFESTS is ${manifests} now, but the last \`make run\` followed ${run.manifests}; this is the resulting state.\n`
}

function tables(objects: readonly StoredObject[]): string {
  const shown = API_KINDS.flatMap((kind) => {
    const ofKind = objects.filter(({ resource }) => resource === kind.resource).map(({ object }) => object)
    return ofKind.length === 0 ? [] : [tableOf(kind, ofKind, Date.now())]
  })
  return shown.length === 0 ? 'There are no ApiKeys and no ServedModels.\n' : shown.join('\n')
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM' // it exists, but belongs to another user
  }
}

function timeOf(ms: number): string {
  const date = new Date(ms)
  return `${date.toLocaleDateString('en-CA')} ${date.toTimeString().slice(0, 8)}`
}

try {
  process.stdout.write(plainLines(await statusText(loadStatusConfig(processEnv()).manifests)))
} catch (error) {
  if (!(error instanceof Misconfigured)) throw error
  for (const line of error.lines) process.stderr.write(plainLines(`headgate: ${line}\n`))
  process.exitCode = 1
}
