/** The operator image's subcommand `uninstall`, as the chart's pre-delete Job runs it, with the operator's own environment. */
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { objectPath } from './kube-admin.ts'
import { ManagedProcess } from './managed-process.ts'
import type { Stack } from './stack.ts'

export interface Uninstalled {
  readonly code: number | null
  readonly text: string
}

/** As users see it. */
const FINALIZER = 'headgate.dev/revoke'
let runs = 0

/** Runs it to its end; SIGKILL after `deadlineMs`, which shows as code null. */
export async function uninstall(stack: Stack, mode: '--keep' | '--purge', deadlineMs = 90_000): Promise<Uninstalled> {
  const { argv, env } = stack.operator.process.spec
  const name = `${stack.site.name}-uninstall-${runs++}`
  const job = new ManagedProcess({
    name,
    argv: [...argv, 'uninstall', mode],
    env: { ...env, POD_NAME: name, METRICS_PORT: String(await freePort()) },
    logFile: join(stack.site.folder, 'logs', `${name}.log`),
  })
  await job.start()
  const timer = setTimeout(() => void job.kill('SIGKILL'), deadlineMs)
  const { code } = await job.ended
  clearTimeout(timer)
  return { code, text: job.log() }
}

export async function heldObjects(stack: Stack, namespaces: readonly string[] = stack.namespaces): Promise<string[]> {
  const held: string[] = []
  for (const namespace of namespaces) {
    for (const kind of ['ApiKey', 'ServedModel'] as const) {
      const objects = await stack.list(kind, namespace)
      const ours = objects.filter(({ metadata }) => (metadata['finalizers'] as string[] | undefined)?.includes(FINALIZER))
      held.push(...ours.map(({ metadata }) => `${kind} ${namespace}/${metadata.name}`))
    }
  }
  return held
}

export async function ownObjects(stack: Stack): Promise<string[]> {
  const secrets = await stack.kube.list(objectPath('v1', 'Secret', stack.operatorNamespace))
  const leases = await stack.kube.list(objectPath('coordination.k8s.io/v1', 'Lease', stack.operatorNamespace))
  return [...secrets, ...leases].map(({ metadata }) => metadata.name).filter((name) => /^(hg-|headgate-operator)/.test(name))
}
