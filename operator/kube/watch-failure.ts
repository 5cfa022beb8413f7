import { isKubeError } from './port.ts'
import { StatusError } from './status-error.ts'

/**
 * One line for a watch that cannot start: what is wrong and what a person can do.
 * @param resource plural and group
 * @param namespace '' = all
 */
export function watchFailureCure(error: unknown, resource: string, namespace: string): string {
  if (error instanceof StatusError && !error.served) {
    return `the API server does not serve ${resource}: install the CustomResourceDefinitions (the Helm chart does with crds.enabled=true)`
  }
  if (isKubeError(error, 'Forbidden')) {
    const where = namespace === '' ? 'in all namespaces' : `in namespace ${namespace}`
    return `no right to list and watch ${resource} ${where}: grant get, list and watch to the operator's ServiceAccount (the Helm chart does) – ${error.message}`
  }
  if (isKubeError(error, 'Unauthorized')) {
    return `the API server does not accept the operator's credentials: check the kubeconfig or the ServiceAccount token – ${error.message}`
  }
  return error instanceof Error ? error.message : 'unknown failure'
}
