/**
 * The promise that an issued value stands in its user Secret and nowhere else, checked over a whole test run: every value is noted as
 * it is issued, and at the end everything that any part has written is searched for it.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { ControlPlane } from './control-plane.ts'
import type { TestObject } from './kube-admin.ts'

/** Data key of a user Secret that holds the value. */
const VALUE_KEY = 'SERVICE_API_KEY'
const VALUES_FILE = 'issued-values'
/** Below it lie Redis and the keyring, where hashes belong. The values themselves belong nowhere. */
export const HASHES_ALLOWED = 'hashes-allowed'
/** etcd holds the user Secrets themselves; pki and dist are older than every value. */
const NOT_SEARCHED = new Set(['etcd', 'pki', 'dist', VALUES_FILE])

/** Where a value was found; the value itself is not part of it. */
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

/** Keeps what a Redis holds for the search. */
export function keepRedisDump(folder: string, name: string, dump: string): void {
  write(join(folder, HASHES_ALLOWED), `${name}.txt`, dump)
}

/** Searches every file of the run for every value issued in it. */
export function searchForValues(folder: string): { readonly values: number; readonly files: number; readonly leaks: readonly Leak[] } {
  const values = existsSync(join(folder, VALUES_FILE)) ? readFileSync(join(folder, VALUES_FILE), 'utf8').split('\n').filter(Boolean) : []
  const files = filesBelow(folder)
  const leaks: Leak[] = []
  for (const file of files) {
    const name = relative(folder, file)
    const text = textOf(readFileSync(file))
    for (const value of new Set(values)) {
      const found = formsOf(value, name.includes(HASHES_ALLOWED)).filter(([, form]) => text.includes(form))
      leaks.push(...found.map(([form]) => ({ file: name, form, key: value.slice(0, 10) })))
    }
  }
  return { values: new Set(values).size, files: files.length, leaks }
}

/** The shapes in which a value could stand somewhere: [name of the shape, text]. */
function formsOf(value: string, hashesAllowed: boolean): ReadonlyArray<readonly [string, string]> {
  const digest = createHash('sha256').update(value).digest()
  const plain = [
    ['the value', value],
    ['its secret part', value.slice(16, 59)], // of sk-hg1 + 10 id + 43 secret + 6 check sum
    ['base64', Buffer.from(value).toString('base64').slice(0, -4)], // whatever the padding
  ] as const
  const hashes = [
    ['its hash, base64url', digest.toString('base64url')],
    ['its hash, hex', digest.toString('hex')],
  ] as const
  return hashesAllowed ? plain : [...plain, ...hashes]
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

function textOf(bytes: Buffer): string {
  return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString()
}

/** Regular files alone: a link leads to a file that is found anyway, or out of the folder. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_SEARCHED.has(entry.name)) return []
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}

function write(folder: string, name: string, text: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), text)
}
