/** The chart as `helm template` renders it, for tests that check the result. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { binFolder } from './control-plane.ts'

export const CHART = fileURLToPath(new URL('../../charts/headgate', import.meta.url))

/** The helm program of the test cache, or undefined when it has not been built. */
export function findHelm(): string | undefined {
  const file = join(binFolder(), 'helm')
  return existsSync(file) ? file : undefined
}

export interface HelmResult {
  readonly ok: boolean
  readonly stdout: string
  readonly stderr: string
}

export function helm(...args: readonly string[]): HelmResult {
  const file = findHelm()
  if (file === undefined) throw new Error('helm is not in the cache: run `make test`')
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', env: { ...process.env, KUBECONFIG: '/dev/null' } })
  return { ok: status === 0, stdout, stderr }
}

/** Values without which the chart does not render: the registry of the images, and the password of the trial Redis, since Helm sees no cluster. */
export const NEEDED: readonly string[] = [
  'operator.image.registry=registry.example.net',
  'gateway.image.registry=registry.example.net',
  'redis.trial.password=given-for-the-tests',
]

/** `helm template` of release `headgate` in namespace `headgate` with the required values; `set` are further `--set` arguments, which win. */
export function template(set: readonly string[]): HelmResult {
  return templateOf([...NEEDED, ...set])
}

export function templateOf(set: readonly string[]): HelmResult {
  return helm('template', 'headgate', CHART, '-n', 'headgate', '--kube-version', '1.32.0', ...set.flatMap((one) => ['--set', one]))
}

export interface Rendered {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: Readonly<Record<string, unknown>>
  readonly data?: Readonly<Record<string, string>>
  readonly rules?: readonly Rule[]
}

export interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** The objects of a render. @throws with helm's message if helm refuses to render */
export function objectsOf(result: HelmResult): readonly Rendered[] {
  if (!result.ok) throw new Error(result.stderr)
  const documents = parseAllDocuments(result.stdout)
  if (!Array.isArray(documents)) return []
  return documents.map((document) => document.toJS() as Rendered | null).filter((object) => object !== null)
}

export function named(objects: readonly Rendered[], kind: string, name = 'headgate-gateway', namespace?: string): Rendered {
  const isIt = ({ kind: its, metadata }: Rendered): boolean =>
    its === kind && metadata.name === name && (namespace === undefined || metadata.namespace === namespace)
  const found = objects.find(isIt)
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}
