/** Reads the state of `make run`, also while it runs, and changes nothing. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { ApiKind } from '#api/kind.ts'
import type { KubeObject } from '#kube/port.ts'
import { readRunRecord, RUN_RECORD, type RunRecord } from './run-record.ts'

/** Objects of one kind. */
export interface StoredKind {
  readonly kind: ApiKind
  readonly objects: readonly KubeObject[]
}

/** The content of the folder. */
export interface StoredStatus {
  readonly kinds: readonly StoredKind[]
  /** The last run; undefined without a record. */
  readonly run: RunRecord | undefined
}

/**
 * @param root the state folder
 * @returns undefined without a state
 * @throws Misconfigured for a folder or a file that cannot be read
 */
export function readStoredStatus(root: string, kinds: readonly ApiKind[]): StoredStatus | undefined {
  try {
    if (entriesOf(root) === undefined) return undefined
    const run = readRunRecord(textOf(join(root, RUN_RECORD)))
    return { run, kinds: kinds.map((kind) => ({ kind, objects: objectsOf(join(root, 'objects', kind.resource.plural)) })) }
  } catch (error) {
    if (error instanceof Misconfigured) throw error
    throw new Misconfigured(`${root}: ${messageOf(error)}; run \`make status\` as the user who ran \`make run\``, { cause: error })
  }
}

function objectsOf(folder: string): readonly KubeObject[] {
  const files = (entriesOf(folder) ?? []).flatMap((space) =>
    (entriesOf(join(folder, space)) ?? []).map((name) => join(folder, space, name)),
  )
  return files.filter((file) => file.endsWith('.json')).flatMap((file) => objectIn(file) ?? [])
}

function objectIn(file: string): KubeObject | undefined {
  const text = textOf(file)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as KubeObject // written by the state folder, by rename
  } catch (error) {
    throw new Misconfigured(`${file}: ${messageOf(error)}; restore the file, or delete it if its object may be created again`, {
      cause: error,
    })
  }
}

/** Visible entries; undefined without such a folder. A running program may remove one at any moment. */
function entriesOf(folder: string): readonly string[] | undefined {
  return unlessAbsent(() => readdirSync(folder).filter((name) => !name.startsWith('.')))
}

function textOf(file: string): string | undefined {
  return unlessAbsent(() => readFileSync(file, 'utf8'))
}

function unlessAbsent<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
