import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { GATEWAY_SETTINGS, loadConfig as loadGatewayConfig } from '../../gateway/config.ts'
import { loadConfig as loadOperatorConfig, operatorSettings } from '../../operator/config.ts'
import { CHART, findHelm, helm, objectsOf, type Rendered, template } from '../support/chart.ts'

const MATRIX: Readonly<Record<string, readonly string[]>> = {
  default: [],
  'own-redis': [
    'redis.trial.enabled=false',
    'redis.url=rediss://redis.example.net:6380',
    'redis.existingSecret=redis-users',
    'redis.caKey=ca.crt',
    'gateway.upstreamCaSecret=private-ca',
    'gateway.forwardHeaders={x-tenant,x-trace}',
    'gateway.publicURL=https://models.example.net',
    'gateway.image.digest=sha256:' + 'ab'.repeat(32),
    'global.imageRegistry=registry.example.net',
    'imagePullSecrets[0].name=pull',
  ],
  namespaces: [
    'scope.watchNamespaces={shop,lab}',
    'operator.replicas=1',
    'gateway.replicas=1',
    'keyring.shards=2',
    'commonLabels.team=models',
  ],
}

/** The trial passwords are new in every render without a cluster. */
function withoutPasswords(yaml: string): string {
  return yaml.replaceAll(/^(\s+(?:operator-password|gateway-password|users\.acl|headgate\.dev\/acl-checksum): )\S+/gm, '$1MADE-AT-INSTALL')
}

interface PodSpec {
  readonly automountServiceAccountToken?: boolean
  readonly serviceAccountName?: string
  readonly securityContext: unknown
  readonly containers: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly volumes?: ReadonlyArray<Readonly<Record<string, unknown>>>
}

function podsOf(objects: readonly Rendered[]): ReadonlyArray<readonly [string, PodSpec]> {
  return objects
    .filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
    .map(({ metadata, spec }) => [metadata.name, (spec['template'] as { spec: PodSpec }).spec] as const)
}

/** The environment of a container as the program sees it; what comes from Secrets and the downward API reads `somewhere`. */
function environmentOf(objects: readonly Rendered[], deployment: string): Record<string, string> {
  const container = new Map(podsOf(objects)).get(deployment)?.containers[0]
  const env = container?.['env'] as ReadonlyArray<{ readonly name: string; readonly value?: string }>
  return Object.fromEntries(env.map(({ name, value }) => [name, value ?? 'somewhere']))
}

function named(objects: readonly Rendered[], kind: string, name: string, namespace?: string): Rendered {
  const found = objects.find(
    (o) => o.kind === kind && o.metadata.name === name && (namespace === undefined || o.metadata.namespace === namespace),
  )
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}

/** `group/resource[=name]: verbs`, one a line. */
function rightsOf(role: Rendered): readonly string[] {
  return (role.rules ?? []).flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.map((resource) => `${group}/${resource}${resourceNames ? `=${resourceNames.join(',')}` : ''}: ${verbs.join(' ')}`),
    ),
  )
}

const WATCHED = [
  'headgate.dev/apikeys: get list watch patch',
  'headgate.dev/servedmodels: get list watch patch',
  'headgate.dev/apikeys/status: patch',
  'headgate.dev/servedmodels/status: patch',
  'headgate.dev/apikeys/finalizers: update',
  '/secrets: get create patch delete',
  '/services: get list watch',
  'discovery.k8s.io/endpointslices: get list watch',
  'events.k8s.io/events: create patch',
]

beforeEach(({ skip }) => {
  skip(findHelm() === undefined, 'helm is not in the cache; `make test` builds it')
})

describe('the chart', () => {
  it('passes helm lint --strict', () => {
    expect(helm('lint', '--strict', CHART)).toMatchObject({ ok: true })
  })

  it.each(Object.entries(MATRIX))('renders %s as the golden file shows', async (name, set) => {
    const { stdout, stderr } = template([...set, 'crds.enabled=false'])
    expect(stderr).toBe('')
    await expect(withoutPasswords(stdout)).toMatchFileSnapshot(`../golden/chart/${name}.yaml`)
  })

  it.each(Object.entries(MATRIX))('gives every pod of %s the restricted profile, probes and a memory limit', (_, set) => {
    const pods = podsOf(objectsOf(template(set)))
    expect(pods.length).toBeGreaterThan(1)
    for (const [name, pod] of pods) {
      expect(pod.securityContext, name).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      for (const container of pod.containers) {
        expect(container, name).toMatchObject({
          securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
          resources: { requests: { cpu: expect.anything(), memory: expect.anything() }, limits: { memory: expect.anything() } },
          readinessProbe: expect.anything(),
          livenessProbe: expect.anything(),
        })
      }
      expect(JSON.stringify(pod), name).not.toMatch(/hostPath|subPath|hostNetwork|hostPort|"privileged"/)
    }
  })

  it('gives no pod but the operator a Kubernetes token', () => {
    for (const [name, pod] of podsOf(objectsOf(template([])))) {
      expect(pod.automountServiceAccountToken, name).toBe(name === 'headgate-operator')
      expect(pod.serviceAccountName, name).toBe(name === 'headgate-operator' ? 'headgate-operator' : undefined)
    }
  })

  it('binds rights to the operator alone', () => {
    const bindings = objectsOf(template([])).filter(({ kind }) => kind.endsWith('RoleBinding'))
    expect(bindings).toHaveLength(2)
    for (const binding of bindings) {
      expect(binding).toMatchObject({ subjects: [{ kind: 'ServiceAccount', name: 'headgate-operator', namespace: 'headgate' }] })
    }
  })

  it('grants the rights of the table, to the verb', () => {
    const objects = objectsOf(template([]))
    expect(rightsOf(named(objects, 'ClusterRole', 'headgate-operator-headgate'))).toEqual(['/namespaces: get list watch', ...WATCHED])
    expect(rightsOf(named(objects, 'Role', 'headgate-operator'))).toEqual([
      '/secrets: get list watch create update patch delete',
      'coordination.k8s.io/leases: create',
      'coordination.k8s.io/leases=headgate-operator: get update patch',
      'discovery.k8s.io/endpointslices: get list watch',
    ])
  })

  it('with a list of namespaces grants them one Role each, and cluster-wide only the sight of namespaces', () => {
    const objects = objectsOf(template(MATRIX['namespaces'] ?? []))
    expect(rightsOf(named(objects, 'ClusterRole', 'headgate-operator-headgate'))).toEqual(['/namespaces: get list watch'])
    for (const namespace of ['shop', 'lab']) {
      expect(rightsOf(named(objects, 'Role', 'headgate-operator-headgate-watched', namespace))).toEqual(WATCHED)
      expect(named(objects, 'RoleBinding', 'headgate-operator-headgate-watched', namespace)).toMatchObject({
        roleRef: { kind: 'Role', name: 'headgate-operator-headgate-watched' },
      })
    }
  })

  it('mounts every keyring shard, the models and the upstream tokens as optional sources of one volume', () => {
    const pods = new Map(podsOf(objectsOf(template(['keyring.shards=4']))))
    const sources = [0, 1, 2, 3].map((i) => ({
      secret: { name: `hg-keyring-4-${i}`, optional: true, items: [{ key: 'records', path: `keyring/4-${i}` }] },
    }))
    expect(pods.get('headgate-gateway')?.volumes?.[0]).toMatchObject({
      projected: {
        sources: [
          ...sources,
          { secret: { name: 'hg-models', optional: true, items: [{ key: 'records', path: 'models' }] } },
          { secret: { name: 'hg-upstream', optional: true } },
        ],
      },
    })
    expect(pods.get('headgate-gateway')?.containers[0]).toMatchObject({
      volumeMounts: [{ mountPath: '/var/run/headgate', readOnly: true }],
    })
  })

  it.each(Object.entries(MATRIX))('sets only variables that the programs of %s read, to values that they take', (_, set) => {
    const objects = objectsOf(template(set))
    const gateway = environmentOf(objects, 'headgate-gateway')
    const operator = environmentOf(objects, 'headgate-operator')
    expect(Object.keys(GATEWAY_SETTINGS.shape)).toEqual(expect.arrayContaining(Object.keys(gateway)))
    expect(Object.keys(operatorSettings.shape)).toEqual(expect.arrayContaining(Object.keys(operator)))
    expect(loadGatewayConfig(gateway).redis.url).toBe(loadOperatorConfig(operator).redis.url)
    expect(loadOperatorConfig(operator).gatewayService).toBe('headgate-gateway')
  })

  it('keeps the metrics port out of the Service that users reach', () => {
    const objects = objectsOf(template([]))
    expect(named(objects, 'Service', 'headgate-gateway').spec['ports']).toMatchObject([{ name: 'http', port: 8080 }])
    expect(named(objects, 'Service', 'headgate-gateway-metrics').spec['ports']).toMatchObject([{ name: 'metrics', port: 9090 }])
  })
})

describe('values', () => {
  it.each([
    ['an unknown key', 'gateway.replica=3', /replica/],
    ['an unknown key at the top', 'gateways=3', /gateways/],
    ['a public address that ends in /v1', 'gateway.publicURL=https://models.example.net/v1', /publicURL/],
    ['a Redis address with a password in it', 'redis.url=redis://:secret@redis:6379', /url/],
    ['an own Redis beside the trial server', 'redis.url=redis://redis:6379', /redis\.trial\.enabled=false/],
    ['a lease that cannot be renewed in time', 'operator.lease.renewSeconds=20', /operator\.lease/],
    ['no Redis at all', 'redis.trial.enabled=false', /needs redis\.url/],
  ])('refuses %s and names it', (_, set, message) => {
    const { ok, stderr } = template([set])
    expect(ok).toBe(false)
    expect(stderr).toMatch(message)
  })

  it('are all in the README of the chart', () => {
    const readme = readFileSync(join(CHART, 'README.md'), 'utf8')
    const values: unknown = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'))
    const missing = pathsOf(values).filter((path) => {
      const groups = path.split('.').map((_, depth, parts) => `\`${parts.slice(0, depth).join('.')}.*\``)
      return !readme.includes(`\`${path}\``) && !groups.some((group) => readme.includes(group))
    })
    expect(missing).toEqual([])
  })
})

function pathsOf(value: unknown, prefix = ''): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0) return [prefix]
  return Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, prefix === '' ? key : `${prefix}.${key}`))
}
