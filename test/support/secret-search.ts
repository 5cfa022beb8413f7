/**
 * The promise that an issued value stands in its user Secret and nowhere else, checked over a whole test run: every value is recorded as
 * it is issued, and at the end all output of all parts is searched for the values.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { ControlPlane } from './control-plane.ts'
import type { TestObject } from './kube-admin.ts'
import { filesBelow, HASHES_ALLOWED, textOf, VALUES_FILE } from './searched-files.ts'

/** Data key of a user Secret that holds the value. */
const VALUE_KEY = 'SERVICE_API_KEY'
/** The place of a found value, without the value itself. */
export interface Leak {
  readonly file: string
  readonly form: string
  /** First 10 characters of the value: its public part. */
  readonly key: string
}

/** Notes every value that the operator issues on this control plane, also of keys that are deleted again, until `signal` aborts. */
export function recordIssuedValues(plane: ControlPlane, folder: string, signal: AbortSignal): void {
  const seen = new Set<string>()
  void plane.admin.watch('/api/v1/secrets', signal, ({ object }) => {
    const value = valueOf(object)
    if (value === undefined || seen.has(value)) return
    seen.add(value)
    appendFileSync(join(folder, VALUES_FILE), `${value}\n`, { mode: 0o600 })
  })
}

/** Writes down what the API server holds beside the user Secrets: objects, statuses, Events, and the other Secrets unpacked. */
export async function dumpCluster(plane: ControlPlane, folder: string): Promise<void> {
  const name = `cluster-${plane.address.port}`
  const kinds = 'apikeys,servedmodels,events,configmaps,services,endpointslices,leases,namespaces,serviceaccounts'
  write(join(folder, 'records'), `${name}.json`, await plane.kubectl('get', kinds, '--all-namespaces', '-o', 'json'))
  const secrets = (await plane.admin.list('/api/v1/secrets')).filter((secret) => valueOf(secret) === undefined)
  write(join(folder, HASHES_ALLOWED), `${name}-secrets.txt`, secrets.map(unpacked).join('\n'))
}

export function keepRedisDump(folder: string, name: string, dump: string): void {
  write(join(folder, HASHES_ALLOWED), `${name}.txt`, dump)
}

export function searchForValues(folder: string): { readonly values: number; readonly files: number; readonly leaks: readonly Leak[] } {
  const noted = existsSync(join(folder, VALUES_FILE)) ? readFileSync(join(folder, VALUES_FILE), 'utf8').split('\n').filter(Boolean) : []
  const values = new Set(noted)
  const index = indexOfForms(values)
  const files = filesBelow(folder)
  const leaks = files.flatMap((file) => {
    const name = relative(folder, file)
    const found = formsIn(textOf(readFileSync(file)), index).filter(({ isHash }) => !isHash || !name.includes(HASHES_ALLOWED))
    return [...new Set(found)].map(({ form, key }) => ({ file: name, form, key }))
  })
  return { values: values.size, files: files.length, leaks }
}

interface Form {
  readonly form: string
  readonly text: string
  readonly key: string
  readonly isHash: boolean
}

/** All shapes are of these characters and at least this long. */
const RUN = /[\w+/-]{43,}/g
/** Length of the beginning by which forms are found: a search for thousands of values in gigabytes of text then takes seconds. */
const ANCHOR = 12

function indexOfForms(values: Iterable<string>): ReadonlyMap<string, readonly Form[]> {
  const index = new Map<string, Form[]>()
  for (const value of values) {
    for (const form of formsOf(value)) {
      const anchor = form.text.slice(0, ANCHOR)
      index.set(anchor, [...(index.get(anchor) ?? []), form])
    }
  }
  return index
}

function formsIn(text: string, index: ReadonlyMap<string, readonly Form[]>): Form[] {
  const found: Form[] = []
  for (const [run] of text.matchAll(RUN)) {
    for (let at = 0; at + ANCHOR <= run.length; at += 1) {
      const candidates = index.get(run.slice(at, at + ANCHOR))
      if (candidates) found.push(...candidates.filter((form) => run.startsWith(form.text, at)))
    }
  }
  return found
}

function formsOf(value: string): readonly Form[] {
  const digest = createHash('sha256').update(value).digest()
  const key = value.slice(0, 10)
  return [
    { form: 'the value', text: value, key, isHash: false },
    { form: 'its secret part', text: value.slice(16, 59), key, isHash: false }, // of sk-hg1 + 10 id + 43 secret + 6 check sum
    { form: 'base64', text: Buffer.from(value).toString('base64').slice(0, -4), key, isHash: false }, // with any padding
    { form: 'its hash, base64url', text: digest.toString('base64url'), key, isHash: true },
    { form: 'its hash, hex', text: digest.toString('hex'), key, isHash: true },
  ]
}

function valueOf(secret: TestObject): string | undefined {
  const data = secret.data as Record<string, string> | undefined
  const encoded = data?.[VALUE_KEY]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString()
}

function unpacked(secret: TestObject): string {
  const data = Object.entries((secret.data ?? {}) as Record<string, string>)
  const entries = data.map(([key, value]) => `${key}: ${textOf(Buffer.from(value, 'base64'))}`)
  return `${JSON.stringify(secret.metadata)}\n${entries.join('\n')}`
}

function write(folder: string, name: string, text: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), text)
}
