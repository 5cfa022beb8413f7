import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { variableOf } from '#platform/settings.ts'
import { GATEWAY_SETTINGS, loadConfig as loadGatewayConfig } from '../../gateway/config.ts'
import { loadConfig as loadOperatorConfig, OPERATOR_SETTINGS } from '../../operator/config.ts'
import { operatorRights, type Where } from '../../operator/rights.ts'
import { MATRIX } from '../support/chart-matrix.ts'
import { CHART, findHelm, helm, named, NEEDED, objectsOf, type Rendered, template, templateOf } from '../support/chart.ts'
import { API_KINDS } from '#api/kinds.ts'

interface PodSpec {
  readonly automountServiceAccountToken?: boolean
  readonly serviceAccountName?: string
  readonly securityContext: unknown
  readonly containers: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly volumes?: ReadonlyArray<Readonly<Record<string, unknown>>>
}

const POD_KINDS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'Job', 'Pod'])

function podsOf(objects: readonly Rendered[]): ReadonlyArray<readonly [string, PodSpec]> {
  return objects
    .filter(({ kind }) => POD_KINDS.has(kind))
    .map(({ kind, metadata, spec }) => [metadata.name, (kind === 'Pod' ? spec : (spec['template'] as Rendered).spec) as unknown as PodSpec])
}

/** The environment of a container as the program sees it. Values from Secrets and the downward API read `somewhere`. */
function environmentOf(objects: readonly Rendered[], deployment: string): Record<string, string> {
  const container = new Map(podsOf(objects)).get(deployment)?.containers[0]
  const env = container?.['env'] as ReadonlyArray<{ readonly name: string; readonly value?: string }>
  return Object.fromEntries(env.map(({ name, value }) => [name, value ?? 'somewhere']))
}

function rightsOf(role: Rendered): readonly string[] {
  return (role.rules ?? []).flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
    apiGroups.flatMap((group) => resources.map((resource) => rightText({ group, resource, verbs, names: resourceNames }))),
  )
}

function table(...places: readonly Where[]): readonly string[] {
  return places.flatMap((place) => operatorRights(API_KINDS).filter(({ where }) => where === place)).map(rightText)
}

interface RuleText {
  readonly group: string
  readonly resource: string
  readonly verbs: readonly string[]
  readonly names?: readonly string[] | undefined
}

function rightText({ group, resource, verbs, names }: RuleText): string {
  return `${group}/${resource}${names ? `=${names.join(',')}` : ''}: ${verbs.join(' ')}`
}

/** Variables that Node itself reads. */
const OF_NODE = ['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'HTTPS_PROXY']
/** Cluster-scoped kinds of the chart, apart from CustomResourceDefinitions. */
const CLUSTER_WIDE = /^(ClusterRole|ClusterRoleBinding|ValidatingAdmissionPolicy|ValidatingAdmissionPolicyBinding)$/

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
    await expect(stdout).toMatchFileSnapshot(`../golden/chart/${name}.yaml`)
  })

  it.each(Object.entries(MATRIX))(
    'gives every pod of %s the restricted profile and a memory limit, and each that stays probes',
    (_, set) => {
      const pods = podsOf(objectsOf(template(set)))
      expect(pods.length).toBeGreaterThan(1)
      for (const [name, pod] of pods) {
        expect(pod.securityContext, name).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
        for (const container of pod.containers) {
          expect(container, name).toMatchObject({
            securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
            resources: { requests: { cpu: expect.anything(), memory: expect.anything() }, limits: { memory: expect.anything() } },
            ...(name === 'headgate-uninstall' || name === 'headgate-test'
              ? {}
              : { readinessProbe: expect.anything(), livenessProbe: expect.anything() }),
          })
        }
        expect(JSON.stringify(pod), name).not.toMatch(/hostPath|subPath|hostNetwork|hostPort|"privileged"/)
      }
    },
  )

  it('gives a Kubernetes token only to the pods of the operator program', () => {
    for (const [name, pod] of podsOf(objectsOf(template([])))) {
      const isOperator = name === 'headgate-operator' || name === 'headgate-uninstall'
      expect(pod.automountServiceAccountToken, name).toBe(isOperator)
      expect(pod.serviceAccountName, name).toBe(isOperator ? 'headgate-operator' : undefined)
    }
  })

  it('binds rights to the operator alone', () => {
    const bindings = objectsOf(template([])).filter(({ kind }) => kind.endsWith('RoleBinding'))
    expect(bindings).toHaveLength(3)
    for (const binding of bindings) {
      expect(binding).toMatchObject({ subjects: [{ kind: 'ServiceAccount', name: 'headgate-operator', namespace: 'headgate' }] })
    }
  })

  it('grants exactly the rights of the table, verb by verb', () => {
    const objects = objectsOf(template([]))
    expect(rightsOf(named(objects, 'ClusterRole', 'headgate-operator-headgate'))).toEqual(table('cluster', 'watched'))
    const onlyWithList = 'discovery.k8s.io/endpointslices: list watch' // without a list of namespaces the ClusterRole covers this right
    expect(rightsOf(named(objects, 'Role', 'headgate-operator'))).toEqual(table('own').filter((text) => text !== onlyWithList))
  })

  it('with a list of namespaces grants one Role in each of them, and cluster-wide at most the right to read namespaces', () => {
    const objects = objectsOf(template(MATRIX['namespaces'] ?? []))
    expect(rightsOf(named(objects, 'ClusterRole', 'headgate-operator-headgate'))).toEqual(table('cluster'))
    expect(rightsOf(named(objects, 'Role', 'headgate-operator'))).toEqual(table('own'))
    const roles: readonly (readonly [string, Where])[] = [
      ['shop', 'watched'],
      ['lab', 'watched'],
      ['old', 'former'],
    ]
    for (const [namespace, where] of roles) {
      expect(rightsOf(named(objects, 'Role', `headgate-operator-headgate-${where}`, namespace))).toEqual(table(where))
      expect(named(objects, 'RoleBinding', `headgate-operator-headgate-${where}`, namespace)).toMatchObject({
        roleRef: { kind: 'Role', name: `headgate-operator-headgate-${where}` },
      })
    }
  })

  it('with a list of namespaces needs no right in the cluster: nothing without a namespace but definitions and admission policy', () => {
    const kinds = (set: readonly string[]) => objectsOf(template(set)).map(({ kind }) => kind)
    const some = ['scope.watchNamespaces={shop}', 'crds.enabled=false']
    expect(kinds(some).filter((kind) => CLUSTER_WIDE.test(kind))).toEqual(['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'])
    expect(kinds([...some, 'admissionPolicy.enabled=false']).filter((kind) => CLUSTER_WIDE.test(kind))).toEqual([])
  })

  it('gives users with view, edit or admin in a namespace the same rights on every kind of Headgate, only if set', () => {
    const roles = (...set: readonly string[]) =>
      objectsOf(template(set)).filter(({ metadata: { labels = {} } }) => Object.keys(labels).some((key) => key.includes('/aggregate-to-')))
    const [view, edit, admin] = roles('rbac.aggregateRoles=true')
    expect([view, edit, admin].map((role) => role?.metadata.name)).toEqual(['headgate-view', 'headgate-edit', 'headgate-admin'])
    for (const { resource } of API_KINDS.filter((kind) => kind.resource.namespaced))
      expect(rightsOf(view!)).toContain(`headgate.dev/${resource.plural}: get list watch`)
    expect(edit?.metadata.labels).not.toHaveProperty(['rbac.authorization.k8s.io/aggregate-to-view'])
    expect(roles()).toEqual([])
    expect(roles('scope.watchNamespaces={shop}', 'rbac.aggregateRoles=true')).toHaveLength(3)
  })

  it.each([
    ['--keep', []],
    ['--purge', ['crds.keep=false']],
    ['--keep', ['crds.keep=false', 'crds.enabled=false']],
  ])('releases everything before an uninstall (%s with %j), as the operator itself, once, and for as long as that takes', (flag, set) => {
    const objects = objectsOf(template(set))
    const job = named(objects, 'Job', 'headgate-uninstall')
    const annotations = { 'helm.sh/hook': 'pre-delete', 'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded' }
    expect(job).toMatchObject({ metadata: { annotations }, spec: { backoffLimit: 0, activeDeadlineSeconds: 3_600 } })
    const [pods, env] = [new Map(podsOf(objects)), (name: string) => environmentOf(objects, name)]
    expect(pods.get('headgate-uninstall')).toMatchObject({ restartPolicy: 'Never', containers: [{ args: ['uninstall', flag] }] })
    expect(pods.get('headgate-uninstall')?.containers[0]?.['image']).toBe(pods.get('headgate-operator')?.containers[0]?.['image'])
    expect(env('headgate-uninstall')).toEqual(env('headgate-operator'))
  })

  it('keeps the Job of an uninstall out of the Service and the Deployment of the operator', () => {
    const { metadata } = (named(objectsOf(template([])), 'Job', 'headgate-uninstall').spec['template'] ?? {}) as Rendered
    expect(metadata.labels).toMatchObject({ 'app.kubernetes.io/component': 'uninstall' })
  })

  it('leaves out disabled objects: admission policy, uninstall Job, network policies', () => {
    const kinds = objectsOf(template(['admissionPolicy.enabled=false', 'uninstall.enabled=false', 'networkPolicy.ingress.enabled=false']))
    expect(kinds.filter(({ kind }) => /^(ValidatingAdmissionPolicy.*|Job|NetworkPolicy)$/.test(kind))).toEqual([])
  })

  it('opens 8080 to all, metrics to this and the named namespaces, usage to this one, and the trial Redis only to the pods of Headgate (rendered, not enforced here)', () => {
    const objects = objectsOf(template(['networkPolicy.ingress.metricsNamespaces={monitoring}']))
    const ingress = (name: string) => named(objects, 'NetworkPolicy', name).spec['ingress']
    const from = [{ podSelector: {} }, { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }]
    const metrics = { ports: [{ port: 9090, protocol: 'TCP' }], from }
    expect(ingress('headgate-gateway')).toEqual([{ ports: [{ port: 8080, protocol: 'TCP' }] }, metrics])
    const usage = { ports: [{ port: 9091, protocol: 'TCP' }], from: [{ podSelector: {} }] }
    expect(ingress('headgate-operator')).toEqual(expect.arrayContaining([usage, metrics]))
    const values = { key: 'app.kubernetes.io/component', operator: 'In', values: ['operator', 'uninstall', 'gateway'] }
    expect(ingress('headgate-redis')).toMatchObject([{ ports: [{ port: 6379 }], from: [{ podSelector: { matchExpressions: [values] } }] }])
  })

  it('with egress policies lets gateways reach name servers, Redis and model servers, but no address of a metadata service', () => {
    const objects = objectsOf(template(MATRIX['own-redis'] ?? []))
    const egress = named(objects, 'NetworkPolicy', 'headgate-gateway').spec['egress']
    expect(egress).toMatchObject([
      { ports: [{ port: 53 }, { port: 53 }, { port: 5353 }, { port: 5353 }] },
      { ports: [{ port: 6380 }] },
      {},
      { ports: [{ port: 443 }] },
    ])
    expect(JSON.stringify(egress)).toContain('"except":["169.254.0.0/16"]')
  })

  it('sizes the heap of the operator and the memory of the trial Redis by their limits', () => {
    const limits = ['operator.resources.limits.memory=1Gi', 'redis.trial.resources.limits.memory=1000M']
    const objects = objectsOf(template(limits))
    expect(environmentOf(objects, 'headgate-operator')['NODE_OPTIONS']).toBe('--max-old-space-size=512 --max-semi-space-size=32')
    const args = new Map(podsOf(objects)).get('headgate-redis')?.containers[0]?.['args'] as readonly string[]
    expect(args.slice(args.indexOf('--maxmemory')).slice(0, 2)).toEqual(['--maxmemory', '750000000'])
  })

  it('sets no user ids if the platform chooses user ids', () => {
    const ids = ['runAsUser', 'runAsGroup', 'fsGroup'].map((field) => `podSecurityContext.${field}=null`)
    for (const [name, pod] of podsOf(objectsOf(template(ids)))) {
      expect(pod.securityContext, name).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    }
  })

  it('mounts additional CA certificates into operator and gateways', () => {
    const pods = new Map(podsOf(objectsOf(template(['extraCA.secret=company-ca', 'extraCA.key=root.pem']))))
    for (const name of ['headgate-operator', 'headgate-gateway', 'headgate-uninstall']) {
      const container = pods.get(name)?.containers[0]
      expect(container?.['env'], name).toContainEqual({ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/headgate/extra-ca/ca.crt' })
      expect(container?.['volumeMounts'], name).toContainEqual({ name: 'extra-ca', mountPath: '/etc/headgate/extra-ca', readOnly: true })
      const secret = { secretName: 'company-ca', items: [{ key: 'root.pem', path: 'ca.crt' }], defaultMode: expect.anything() }
      expect(pods.get(name)?.volumes, name).toContainEqual({ name: 'extra-ca', secret })
    }
  })

  it('mounts every shard of keyring, models, accounts and upstream tokens as an optional source of one volume', () => {
    const pods = new Map(podsOf(objectsOf(template(['keyring.shards=4']))))
    const sources = [0, 1, 2, 3].map((i) => ({
      secret: { name: `hg-keyring-4-${i}`, optional: true, items: [{ key: 'records', path: `keyring/4-${i}` }] },
    }))
    const eight = [...Array(8).keys()]
    expect(pods.get('headgate-gateway')?.volumes?.[0]).toMatchObject({
      projected: {
        sources: [
          ...sources,
          ...eight.map((i) => ({
            secret: { name: `hg-models-8-${i}`, optional: true, items: [{ key: 'records', path: `models/8-${i}` }] },
          })),
          ...eight.map((i) => ({
            secret: { name: `hg-accounts-8-${i}`, optional: true, items: [{ key: 'records', path: `accounts/8-${i}` }] },
          })),
          ...eight.map((i) => ({ secret: { name: `hg-upstream-8-${i}`, optional: true } })),
        ],
      },
    })
    expect(pods.get('headgate-gateway')?.containers[0]).toMatchObject({
      volumeMounts: [{ mountPath: '/var/run/headgate', readOnly: true }],
    })
  })

  it.each(Object.entries(MATRIX))('sets only variables that the programs of %s read, to values that the programs accept', (_, set) => {
    const objects = objectsOf(template(set))
    const gateway = environmentOf(objects, 'headgate-gateway')
    const operator = environmentOf(objects, 'headgate-operator')
    expect([...Object.keys(GATEWAY_SETTINGS.shape).map(variableOf), ...OF_NODE]).toEqual(expect.arrayContaining(Object.keys(gateway)))
    expect([...Object.keys(OPERATOR_SETTINGS.shape).map(variableOf), ...OF_NODE]).toEqual(expect.arrayContaining(Object.keys(operator)))
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
    ['an unknown value', 'gateway.replica=3', /replica/],
    ['an unknown value at the top', 'gateways=3', /gateways/],
    ['a public address that ends in /v1', 'gateway.publicURL=https://models.example.net/v1', /publicURL/],
    ['a Redis address with a password in it', 'redis.url=redis://:secret@redis:6379', /url/],
    ['an own Redis beside the trial server', 'redis.url=redis://redis:6379', /redis\.trial\.enabled=false/],
    ['a lease that cannot be renewed in time', 'operator.lease.renewSeconds=20', /operator\.lease/],
    ['no Redis at all', 'redis.trial.enabled=false', /needs redis\.url/],
    ['a namespace to release where all are served', 'scope.formerNamespaces={old}', /scope\.formerNamespaces/],
    ['every publisher beside a named one', 'scope.publishers={*,shop}', /scope\.publishers/],
    ['every namespace of cluster addresses beside a named one', 'scope.clusterAddresses={*,shop}', /scope\.clusterAddresses/],
    ['every namespace of unproven hashes beside a named one', 'scope.unprovenHashes={*,shop}', /scope\.unprovenHashes/],
    ['a currency that is not a code', 'billing.currency=usd', /currency/],
    ['a low balance with a sign', 'billing.lowBalance=-5.00', /lowBalance/],
    ['an image digest that is none', 'operator.image.digest=sha256:abc', /digest/],
    ['an amount of memory that is none', 'operator.resources.limits.memory=lots', /"lots" is not an amount of memory/],
    ['less memory than its bodies need', 'gateway.resources.limits.memory=512Mi', /gateway\.resources\.limits\.memory.*maxBodyBytes/],
    ['a field that no security context has', 'podSecurityContext.runAsUsr=1', /runAsUsr/],
    ['two sources of CA certificates', 'extraCA.secret=a,extraCA.configMap=b', /extraCA/],
    ['a variable that the chart sets itself', 'operator.extraEnv[0].name=NAMESPACE,operator.extraEnv[0].value=x', /operator\.extraEnv/],
  ])('refuses %s and names it', (_, set, message) => {
    const { ok, stderr } = template([set])
    expect(ok).toBe(false)
    expect(stderr).toMatch(message)
  })

  it('need a registry or a digest of both images: the message names the commands that build and load them', () => {
    const [operator = '', gateway = '', password = ''] = NEEDED
    for (const [missing, set] of [
      ['operator', [gateway, password]],
      ['gateway', [operator, password]],
    ] as const) {
      const { ok, stderr } = templateOf(set)
      expect(ok).toBe(false)
      expect(stderr).toContain(`${missing}.image.registry: it is empty`)
      expect(stderr).toContain('make kind-load')
      expect(stderr).toContain(`docker build -f ${missing}/Dockerfile`)
    }
    const digests = ['operator', 'gateway'].map((program) => `${program}.image.digest=sha256:${'ab'.repeat(32)}`)
    expect(templateOf([...digests, password])).toMatchObject({ ok: true })
    expect(templateOf(['global.imageRegistry=registry.example.net', password])).toMatchObject({ ok: true })
    const repositories = ['operator', 'gateway'].map((program) => `${program}.image.repository=registry.example.net/hg/${program}`)
    expect(templateOf([...repositories, password])).toMatchObject({ ok: true })
    const another = ['operator', 'gateway'].map((program) => `${program}.image.repository=elsewhere/${program}`)
    expect(templateOf([...another, password]), 'a repository of docker.io without its registry').toMatchObject({ ok: false })
  })

  it('need a password of the trial Redis if Helm sees no cluster, and render the same objects for the same password', () => {
    const images = NEEDED.slice(0, 2)
    const { ok, stderr } = templateOf(images)
    expect(ok).toBe(false)
    expect(stderr).toContain('redis.trial.password: Helm sees no cluster here')
    expect(stderr).toContain('openssl rand -hex 20')
    const own = ['redis.trial.enabled=false', 'redis.url=redis://redis:6379']
    expect(templateOf([...images, ...own]), 'an own Redis needs none').toMatchObject({ ok: true })
    const render = (password: string): string => templateOf([...images, `redis.trial.password=${password}`]).stdout
    expect(render('a-password-of-the-trial')).toBe(render('a-password-of-the-trial'))
    expect(render('a-password-of-the-trial')).not.toContain('a-password-of-the-trial')
    const secretOf = (password: string) => {
      const { data = {} } = objectsOf(templateOf([...images, `redis.trial.password=${password}`])).find(
        ({ kind, metadata }) => kind === 'Secret' && metadata.name === 'headgate-redis',
      ) as Rendered
      return data
    }
    const [one, other] = [secretOf('a-password-of-the-trial'), secretOf('b-password-of-the-trial')]
    expect(new Set([...Object.values(one), ...Object.values(other)]).size, 'two users, each with a password of its own').toBe(4)
    expect(templateOf([...images, 'redis.trial.password=short']).stderr).toMatch(/password/)
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
