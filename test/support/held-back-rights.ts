/** Rights that the operator lacks in one namespace and has in all others, as when one Role of an installation is missing. */
import { objectPath } from './kube-admin.ts'
import type { Stack } from './stack.ts'
import { waitFor } from './wait-for.ts'

interface Rule {
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

/** The removed rights; without `verbs`, every right in that namespace. */
export interface HeldBack {
  readonly namespace: string
  /** Verbs on Secrets. */
  readonly verbs?: readonly string[]
}

/** @returns a function that gives the rights back */
export async function holdBackRights(stack: Stack, { namespace, verbs }: HeldBack): Promise<() => Promise<void>> {
  const roles = stack.rights.filter(({ kind, metadata }) => kind === 'Role' && metadata.namespace === namespace)
  const verb = verbs?.[0] ?? 'get'
  for (const role of roles) {
    const rules = (role.rules as readonly Rule[]).map((rule) => without(rule, verbs)).filter(hasVerbs)
    await stack.kube.apply({ ...role, rules })
  }
  await untilAllowed(stack, namespace, verb, false)
  return async () => {
    for (const role of roles) await stack.kube.apply(role)
    await untilAllowed(stack, namespace, verb, true)
  }
}

function without(rule: Rule, verbs: readonly string[] | undefined): Rule {
  const isHeld = (verb: string): boolean => verbs === undefined || (rule.resources.includes('secrets') && verbs.includes(verb))
  return { ...rule, verbs: rule.verbs.filter((verb) => !isHeld(verb)) }
}

function hasVerbs(rule: Rule): boolean {
  return rule.verbs.length > 0
}

/** Waits for the API server's authorizer, which reads caches: a changed right takes effect some ms after the write. */
async function untilAllowed(stack: Stack, namespace: string, verb: string, allowed: boolean): Promise<void> {
  const user = `system:serviceaccount:${stack.operatorNamespace}:headgate-operator`
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    metadata: { name: '' },
    spec: { user, resourceAttributes: { namespace, verb, resource: 'secrets' } },
  }
  await waitFor(`the operator's right to ${verb} Secrets in ${namespace} to be ${allowed}`, async () => {
    const answer = await stack.kube.call('POST', objectPath(review.apiVersion, review.kind), review)
    return Boolean(answer.status?.allowed) === allowed
  })
}
