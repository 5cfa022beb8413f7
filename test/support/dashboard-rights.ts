/** Rights of the dashboard and of payments on a control plane, as the chart renders them, and the token that a kubelet writes for the dashboard. */
import { writeFileSync } from 'node:fs'
import { objectsOf, template } from './chart.ts'
import { MATRIX } from './chart-matrix.ts'
import type { ControlPlane } from './control-plane.ts'

const KINDS = /^(ServiceAccount|(Cluster)?Role(Binding)?|ValidatingAdmissionPolicy(Binding)?)$/
const COMPONENTS: ReadonlySet<string> = new Set(['dashboard', 'payments'])
/** Of the programs, and of the keys that people make, as in the render. */
const NAMESPACES = ['headgate', 'headgate-accounts']

/** Applies ServiceAccounts, roles and policies. */
export async function applyDashboardRights(plane: ControlPlane): Promise<void> {
  for (const namespace of NAMESPACES) await plane.namespace(namespace)
  for (const object of objectsOf(template(MATRIX['dashboard'] ?? [])))
    if (KINDS.test(object.kind) && COMPONENTS.has(object.metadata.labels?.['app.kubernetes.io/component'] ?? ''))
      await plane.admin.apply({ apiVersion: 'v1', ...object })
}

/** Requests a token with which the dashboard calls the usage interface of the operator. @param audience another one is refused there */
export async function usageTokenOf(plane: ControlPlane, audience = 'headgate-usage'): Promise<string> {
  const request = {
    ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: { name: 'headgate-dashboard' } },
    spec: { audiences: [audience], expirationSeconds: 3_600 },
  }
  const { status } = await plane.admin.call('POST', '/api/v1/namespaces/headgate/serviceaccounts/headgate-dashboard/token', request)
  return (status as { token: string }).token // TokenRequest always answers with one
}

/** Writes a usage token into the file that the dashboard reads. */
export async function writeUsageToken(plane: ControlPlane, file: string, audience?: string): Promise<void> {
  writeFileSync(file, await usageTokenOf(plane, audience), { mode: 0o600 })
}
