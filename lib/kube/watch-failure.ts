import { isKubeError, type KubeError } from './port.ts'
import { StatusError } from './status-error.ts'

/**
 * One sentence for a watch that cannot start, with the error and the remedy.
 * @param resource plural and group
 * @param namespace '' = all
 */
export function watchFailureRemedy(error: unknown, resource: string, namespace: string): string {
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
  if (isKubeError(error, 'Unreachable'))
    return `${silence(error)}; check that it runs and that KUBECONFIG or the pod's ServiceAccount leads to it`
  return error instanceof Error ? error.message : 'unknown failure'
}

/** The message names no resource: all watches fail together, and one log entry is enough for all of them. */
function silence({ status, cause }: KubeError): string {
  if (status >= 500) return `the API server answers ${status}`
  return `the API server does not answer (${cause instanceof Error ? cause.message || cause.name : 'no reason given'})`
}
