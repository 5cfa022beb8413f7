/** A control plane with a whole Headgate on it, for measurements outside of the test runner. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { binFolder, ControlPlane } from '../support/control-plane.ts'
import { Stack, type StackOptions } from '../support/stack.ts'

/** What a stack is put on. */
export interface OwnLabSite {
  readonly ip: string
  /** Run folder; has `dist/` with the bundles. */
  readonly folder: string
  /** Server behind the models of the stack, if any are made. */
  readonly modelServer: { readonly url: string; readonly port: number }
}

/** Why there can be no control plane here; undefined when there can. */
export function missingControlPlane(): string | undefined {
  const isBuilt = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'].every((name) =>
    existsSync(join(binFolder(), name)),
  )
  return isBuilt ? undefined : 'the Kubernetes programs are not built yet; `make integration` builds them'
}

/** Runs `use` with a stack, and stops everything afterwards. */
export async function withStack<T>(site: OwnLabSite, options: StackOptions, use: (stack: Stack) => Promise<T>): Promise<T> {
  const { ip, folder, modelServer } = site
  const plane = await ControlPlane.start(join(folder, 'control-plane'), ip)
  try {
    const stack = await Stack.open({ name: 'bench', ip, folder, plane, modelServer }, options)
    try {
      return await use(stack)
    } finally {
      await stack.close()
    }
  } finally {
    await plane.stop()
  }
}
