import { expect, test } from 'vitest'
import { KubeError } from './port.ts'
import { StatusError, unreachable } from './status-error.ts'
import { watchFailureRemedy } from './reflector.ts'

const asked = { verb: 'list', resource: 'apikeys.headgate.dev', object: 'shop' }
const line = (error: unknown, namespace = 'shop'): string => watchFailureRemedy(error, asked.resource, namespace)
const refusal = (status: number, text: string): StatusError => new StatusError(asked, { status, text })

test('an API server that does not answer gives every watch the same line, with the remedy', () => {
  const cause = new Error('connect ECONNREFUSED 10.0.0.1:6443')
  const lines = [asked, { ...asked, resource: 'services' }].map((one) => line(unreachable(one, cause)))
  expect(new Set(lines)).toEqual(
    new Set([
      "the API server does not answer (connect ECONNREFUSED 10.0.0.1:6443); check that it runs and that KUBECONFIG or the pod's ServiceAccount leads to it",
    ]),
  )
  expect(line(refusal(503, 'etcd is away'))).toMatch(/^the API server answers 503; check that it runs/)
  expect(line(new KubeError('Unreachable', 0, 'no answer in time'))).toMatch(/^the API server does not answer \(no reason given\); check/)
})

test('a missing definition, missing rights and stale credentials each name their remedy', () => {
  expect(line(refusal(404, '404 page not found'))).toMatch(/does not serve apikeys\.headgate\.dev: install the CustomResourceDefinitions/)
  const forbidden = '{"kind":"Status","reason":"Forbidden","message":"User x cannot list"}'
  expect(line(refusal(403, forbidden))).toMatch(/in namespace shop: grant get, list and watch .* – .*User x cannot list$/)
  expect(line(refusal(403, forbidden), '')).toContain('in all namespaces')
  expect(line(refusal(401, '{"kind":"Status","reason":"Unauthorized"}'))).toMatch(/check the kubeconfig or the ServiceAccount token/)
})

test('what no informer asks for carries the remedy of missing rights itself, but not where its namespace is going', () => {
  const create = { verb: 'create', resource: 'secrets', object: 'shop/bot' }
  const status = (cause: object[]): string => JSON.stringify({ kind: 'Status', reason: 'Forbidden', details: { causes: cause } })
  expect(new StatusError(create, { status: 403, text: status([]) }).message).toMatch(
    /^create secrets shop\/bot: 403 Forbidden; grant the operator's ServiceAccount this right/,
  )
  expect(new StatusError(create, { status: 403, text: status([{ reason: 'NamespaceTerminating' }]) }).message).not.toContain('grant')
})
