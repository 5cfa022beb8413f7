/** Kubernetes objects for tests. A test names the fields that matter; the others have valid defaults. */
import { type Account, accountSpec } from '#api/account.ts'
import type { ApiKey } from '#api/apikey.ts'
import { type Credit, creditSpec } from '#api/credit.ts'
import { type Plan, planSpec } from '#api/plan.ts'
import { type ServedModel, servedModelSpec } from '#api/served-model.ts'
import type { z } from 'zod'
import type { EndpointSlice, Namespace, Secret, Service } from '#kube/resources.ts'

/** Namespace of everything here. */
export const SHOP = 'shop'

type Metadata = Partial<ServedModel['metadata']>

/** A ServedModel as the API server hands it over: defaults filled in. */
export function servedModel(name: string, spec: Partial<z.input<typeof servedModelSpec>> = {}, metadata: Metadata = {}): ServedModel {
  const backends = [{ name: 'one', service: { name: 'llama', port: 8000 } }]
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ServedModel',
    metadata: { name, namespace: SHOP, ...metadata },
    spec: servedModelSpec.parse({ backends, ...spec }),
  }
}

/** An ApiKey for all models, Active unless the test says otherwise. */
export function apiKey(name: string, spec: Partial<ApiKey['spec']> = {}, metadata: Metadata = {}): ApiKey {
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ApiKey',
    metadata: { name, namespace: SHOP, ...metadata },
    spec: { state: 'Active', models: ['*'], ...spec },
  }
}

/** A Plan for all models. */
export function plan(name: string, spec: Partial<z.input<typeof planSpec>> = {}, metadata: Metadata = {}): Plan {
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Plan',
    metadata: { name, ...metadata },
    spec: planSpec.parse({ models: ['*'], ...spec }),
  }
}

/** An Account on the Plan `pro` whose keys are in the namespace `shop`. */
export function account(name: string, spec: Partial<z.input<typeof accountSpec>> = {}, metadata: Metadata = {}): Account {
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': SHOP } }
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Account',
    metadata: { name, ...metadata },
    spec: accountSpec.parse({ planRef: { name: 'pro' }, namespaces, ...spec }),
  }
}

/** A Credit of 25.00 for the Account `acme`. */
export function credit(name: string, spec: Partial<z.input<typeof creditSpec>> = {}, metadata: Metadata = {}): Credit {
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Credit',
    metadata: { name, ...metadata },
    spec: creditSpec.parse({ accountRef: { name: 'acme' }, amount: '25.00', type: 'TopUp', ...spec }),
  }
}

/** A Service with one port. */
export function service(name: string, port: { name?: string; port: number } = { port: 8000 }, namespace = SHOP): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: { ports: [port] } }
}

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number]

/** A slice of a Service; an address alone is a ready endpoint. */
export function slice(
  serviceName: string,
  endpoints: ReadonlyArray<string | Endpoint>,
  change: Partial<EndpointSlice> = {},
): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${serviceName}-1`, namespace: SHOP, labels: { 'kubernetes.io/service-name': serviceName } },
    addressType: 'IPv4',
    ports: [{ port: 8080 }],
    endpoints: endpoints.map((one) => (typeof one === 'string' ? { addresses: [one], conditions: { ready: true } } : one)),
    ...change,
  }
}

/** A Namespace with labels. */
export function namespace(name: string, labels: Readonly<Record<string, string>> = {}): Namespace {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }
}

/** A Secret whose entries are given in plain text. */
export function secret(name: string, entries: Readonly<Record<string, string>>, metadata: Metadata = {}): Secret {
  const data = Object.fromEntries(Object.entries(entries).map(([key, text]) => [key, Buffer.from(text).toString('base64')]))
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: SHOP, ...metadata }, type: 'Opaque', data }
}
