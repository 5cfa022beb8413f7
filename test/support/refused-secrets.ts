/** Ways in which a namespace refuses new Secrets: a quota, or an admission policy. */
import { ApiRefusal, objectPath } from './kube-admin.ts'
import type { Stack } from './stack.ts'
import { waitFor } from './wait-for.ts'

/** Words of the policy's author, which the status must show to the owner of an object. */
export const POLICY_WORDS = 'Secrets of this namespace come from the vault; ask platform@example.com'
const ADMISSION = 'admissionregistration.k8s.io/v1'

/** A ResourceQuota that leaves room for no Secret. @returns a function that removes it */
export async function quotaOnSecrets(stack: Stack, namespace: string): Promise<() => Promise<void>> {
  const name = 'no-secrets'
  const spec = { hard: { 'count/secrets': '0' } }
  await stack.kube.apply({ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name, namespace }, spec })
  await untilRefused(stack, namespace, true)
  return async () => {
    await stack.kube.remove(objectPath('v1', 'ResourceQuota', namespace, name))
    await untilRefused(stack, namespace, false)
  }
}

/** A policy that denies new Secrets in words of its own. @returns a function that removes it */
export async function policyAgainstSecrets(stack: Stack, namespace: string): Promise<() => Promise<void>> {
  const name = `no-secrets-${namespace}`
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['secrets'] }
  const labels = { 'kubernetes.io/metadata.name': namespace }
  const policy = {
    apiVersion: ADMISSION,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: 'false', message: POLICY_WORDS }],
    },
  }
  const binding = {
    apiVersion: ADMISSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'], matchResources: { namespaceSelector: { matchLabels: labels } } },
  }
  await stack.kube.apply(policy)
  await stack.kube.apply(binding)
  await untilRefused(stack, namespace, true)
  return async () => {
    for (const { kind } of [binding, policy]) await stack.kube.remove(objectPath(ADMISSION, kind, '', name))
    await untilRefused(stack, namespace, false)
  }
}

/** Quotas and policies take effect some time after their creation. */
async function untilRefused(stack: Stack, namespace: string, refused: boolean): Promise<void> {
  const path = `${objectPath('v1', 'Secret', namespace)}?dryRun=All`
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'probe', namespace } }
  await waitFor(`new Secrets in ${namespace} to be ${refused ? 'refused' : 'admitted'}`, async () => {
    try {
      await stack.kube.call('POST', path, secret)
      return !refused
    } catch (error) {
      if (!(error instanceof ApiRefusal)) throw error
      return refused
    }
  })
}
