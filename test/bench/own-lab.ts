/** Control planes with a whole Headgate on them, for measurements outside of the test runner. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CHART_HEAP, CHART_LEASE } from '../support/chart-operator.ts'
import { binFolder, ControlPlane } from '../support/control-plane.ts'
import { Stack, type StackOptions } from '../support/stack.ts'

/**
 * Delay of the mirror of the mounted Secrets, ms; a kubelet takes a minute. The mirror runs in the bench's own process, and without a delay it
 * would take processor time from the measured programs at each change.
 */
export const KUBELET_LAG_MS = 5_000

/** The parts below a stack. */
export interface OwnLabSite {
  readonly ip: string
  /** Run folder; has `dist/` with the bundles. */
  readonly folder: string
  /** Server behind the models of the stack, if any are made. */
  readonly modelServer: { readonly url: string; readonly port: number }
}

/** Why this machine cannot run a control plane; undefined if it can. */
export function missingControlPlane(): string | undefined {
  const isBuilt = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'].every((name) =>
    existsSync(join(binFolder(), name)),
  )
  return isBuilt ? undefined : 'the Kubernetes programs are not built yet; `make integration` builds them'
}

/** Runs `use` with an empty control plane, and stops it afterwards. @param name of its folder below the run folder */
export async function withControlPlane<T>(site: OwnLabSite, use: (plane: ControlPlane) => Promise<T>, name = 'control-plane'): Promise<T> {
  const plane = await ControlPlane.start(join(site.folder, name), site.ip, { audit: false })
  try {
    return await use(plane)
  } finally {
    await plane.stop()
  }
}

/** As in the chart: times of the election, and half of the memory limit for the heap. Bounds of a tenant are not measured. */
export const OPERATOR_ENV = {
  ...CHART_LEASE,
  ...CHART_HEAP,
  MAX_API_KEYS_PER_NAMESPACE: '100000',
  MAX_MODEL_BYTES_PER_NAMESPACE: '1073741824',
} as const

/** A stack and its control plane. */
export interface OwnStack {
  readonly site: OwnLabSite
  readonly plane: ControlPlane
  /** Of its namespaces, pods and logs; unique on the control plane. */
  readonly name: string
  readonly options: StackOptions
}

/** Runs `use` with a stack on a control plane that may hold others, and stops the stack afterwards. Its objects stay. */
export async function withStackOn<T>({ site, plane, name, options }: OwnStack, use: (stack: Stack) => Promise<T>): Promise<T> {
  const { ip, folder, modelServer } = site
  const stack = await Stack.open({ name, ip, folder, plane, modelServer }, options)
  try {
    return await use(stack)
  } finally {
    await stack.close()
  }
}

/** Runs `use` with a stack on a control plane of its own, and stops everything afterwards. */
export async function withStack<T>(site: OwnLabSite, options: StackOptions, use: (stack: Stack) => Promise<T>): Promise<T> {
  return withControlPlane(site, (plane) => withStackOn({ site, plane, name: 'bench', options }, use))
}
