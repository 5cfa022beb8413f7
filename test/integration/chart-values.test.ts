/** Values of the chart that fit it into a cluster: accounts, rights, annotations, pods, Services and objects of the administrator. */
import { beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DASHBOARD } from '../support/chart-matrix.ts'
import { CHART, findHelm, named, objectsOf, type Rendered, template } from '../support/chart.ts'

const PAYMENTS = [
  ...DASHBOARD,
  'dashboard.billing=Prepaid',
  'dashboard.payments.provider=stripe',
  'dashboard.payments.existingSecret=headgate-payments',
]
/** Where the values of each program are, and the name of its Deployment. */
const PROGRAMS = [
  ['operator', 'headgate-operator'],
  ['gateway', 'headgate-gateway'],
  ['dashboard', 'headgate-dashboard'],
  ['dashboard.payments', 'headgate-payments'],
] as const

interface Container {
  readonly name: string
  readonly volumeMounts?: ReadonlyArray<{ readonly name: string }>
  readonly env: ReadonlyArray<{ readonly name: string; readonly valueFrom?: unknown }>
  readonly readinessProbe?: unknown
  readonly livenessProbe?: unknown
  readonly startupProbe?: unknown
}

interface Pod {
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken: boolean
  readonly initContainers?: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes?: ReadonlyArray<{ readonly name: string }>
  readonly topologySpreadConstraints?: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly dnsConfig?: unknown
  readonly hostAliases?: unknown
}

const rendered = (...set: readonly string[]): readonly Rendered[] => objectsOf(template([...PAYMENTS, ...set]))
const podOf = (objects: readonly Rendered[], deployment: string): Pod =>
  (named(objects, 'Deployment', deployment).spec['template'] as { spec: Pod }).spec
const names = (objects: readonly Rendered[], kind: string): string[] =>
  objects.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name)
/** `values.yaml`, in which some values are lists: `--set` replaces a list as a whole. */
const VALUES = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Record<string, { topologySpreadConstraints?: unknown }>

beforeEach(({ skip }) => {
  skip(findHelm() === undefined, 'helm is not in the cache; `make test` builds it')
})

describe('the ServiceAccount', () => {
  it('of each program but the gateway is made by default, and pods of gateways get no token even with one', () => {
    expect(names(rendered(), 'ServiceAccount').toSorted()).toEqual(['headgate-dashboard', 'headgate-operator', 'headgate-payments'])
    const objects = rendered('gateway.serviceAccount.create=true', 'gateway.serviceAccount.annotations.team=models')
    expect(named(objects, 'ServiceAccount').metadata.annotations).toEqual({ team: 'models' })
    expect(podOf(objects, 'headgate-gateway')).toMatchObject({
      serviceAccountName: 'headgate-gateway',
      automountServiceAccountToken: false,
    })
  })

  it.each(PROGRAMS)('of %s may be your own: pods, bindings and admission policies name it', (values, deployment) => {
    const objects = rendered(`${values}.serviceAccount.create=false`, `${values}.serviceAccount.name=mine`)
    expect(names(objects, 'ServiceAccount')).not.toContain(deployment)
    expect(podOf(objects, deployment).serviceAccountName).toBe('mine')
    const policies = JSON.stringify(objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy'))
    expect(policies).not.toContain(`:headgate:${deployment}'`)
    const subjects = objects
      .flatMap((one) => (one as { subjects?: ReadonlyArray<{ name: string }> }).subjects ?? [])
      .map(({ name }) => name)
    expect(subjects).not.toContain(deployment)
    if (values === 'gateway') return
    expect(subjects).toContain('mine')
    expect(policies).toContain(`system:serviceaccount:headgate:mine'`)
  })

  it('without a name must be made by the chart', () => {
    const { ok, stderr } = template(['operator.serviceAccount.create=false'])
    expect([ok, stderr]).toEqual([false, expect.stringContaining('needs serviceAccount.name')])
  })
})

it('rbac.create=false leaves out every Role and binding, and nothing else', () => {
  const isRight = ({ kind }: Rendered): boolean => /^(Cluster)?Role(Binding)?$/.test(kind)
  const without = rendered('rbac.create=false', 'rbac.aggregateRoles=true')
  expect(without.filter(isRight)).toEqual([])
  expect(without).toEqual(rendered().filter((one) => !isRight(one)))
})

it('commonAnnotations are on every object, and give way to annotations of the object', () => {
  const objects = rendered(
    'commonAnnotations.team=models',
    'gateway.service.annotations.team=edge',
    'monitoring.serviceMonitor.enabled=true',
    'monitoring.prometheusRule.enabled=true',
    'monitoring.dashboard.enabled=true',
    'gateway.autoscaling.enabled=true',
    'crds.enabled=false',
  )
  const teams = objects.map(({ kind, metadata }) => [kind, metadata.name, metadata.annotations?.['team']])
  expect(teams.filter(([, , team]) => team !== 'models')).toEqual([['Service', 'headgate-gateway', 'edge']])
})

it('extraObjects are rendered as templates, given as maps or as texts', () => {
  const map = ['extraObjects[0].apiVersion=v1', 'extraObjects[0].kind=ConfigMap', 'extraObjects[0].metadata.name=map-{{ .Release.Name }}']
  const text = 'extraObjects[1]=apiVersion: v1\nkind: ConfigMap\nmetadata: { name: "text-{{ .Release.Name }}" }'
  expect(names(rendered(...map, text), 'ConfigMap')).toEqual(['map-headgate', 'text-headgate'])
})

describe.each(PROGRAMS)('pods of %s', (values, deployment) => {
  it('get more containers, volumes and mounts', () => {
    const objects = rendered(
      `${values}.initContainers[0].name=first`,
      `${values}.extraContainers[0].name=beside`,
      `${values}.extraVolumes[0].name=more`,
      `${values}.extraVolumeMounts[0].name=more`,
      `${values}.extraVolumeMounts[0].mountPath=/more`,
    )
    const plain = podOf(rendered(), deployment)
    const pod = podOf(objects, deployment)
    expect(pod.initContainers?.map(({ name }) => name)).toEqual(['first'])
    expect(pod.containers.map(({ name }) => name)).toEqual([plain.containers[0]?.name, 'beside'])
    expect(pod.volumes).toEqual([...(plain.volumes ?? []), { name: 'more' }])
    expect(pod.containers[0]?.volumeMounts).toEqual([...(plain.containers[0]?.volumeMounts ?? []), { name: 'more', mountPath: '/more' }])
  })

  it('get fields of probes, which win, and a startup probe only if it has a field', () => {
    const container = podOf(rendered(), deployment).containers[0]
    expect(container).not.toHaveProperty('startupProbe')
    const set = ['startup.failureThreshold=30', 'liveness.periodSeconds=20', 'readiness.failureThreshold=9']
    const [changed] = podOf(rendered(...set.map((one) => `${values}.probes.${one}`)), deployment).containers
    const path = (container?.livenessProbe as { httpGet: unknown } | undefined)?.httpGet
    expect(changed?.startupProbe).toEqual({ httpGet: path, failureThreshold: 30, periodSeconds: 10, timeoutSeconds: 2 })
    expect(changed?.livenessProbe).toEqual({ ...(container?.livenessProbe as object), periodSeconds: 20 })
    expect(changed?.readinessProbe).toEqual({ ...(container?.readinessProbe as object), failureThreshold: 9 })
    const [zero] = podOf(rendered(`${values}.probes.liveness.initialDelaySeconds=0`), deployment).containers
    expect(zero?.livenessProbe).toMatchObject({ initialDelaySeconds: 0 })
  })

  it('are replaced one by one, or by another strategy', () => {
    const strategy = (...set: readonly string[]): unknown => named(rendered(...set), 'Deployment', deployment).spec['strategy']
    const isFile = values === 'dashboard'
    expect(strategy()).toEqual(isFile ? { type: 'Recreate' } : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } })
    expect(strategy(`${values}.strategy.type=Recreate`)).toEqual({ type: 'Recreate' })
  })
})

describe.each(PROGRAMS.filter(([values]) => values !== 'dashboard.payments'))('the pods of %s', (values, deployment) => {
  it('are spread over zones and nodes by default, or as a value says, each constraint with the selector of the pods', () => {
    const { matchLabels } = named(rendered(), 'Deployment', deployment).spec['selector'] as { matchLabels: object }
    const common = {
      maxSkew: 1,
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchLabels },
      matchLabelKeys: ['pod-template-hash'],
    }
    const keys = ['topology.kubernetes.io/zone', 'kubernetes.io/hostname']
    expect(podOf(rendered(), deployment).topologySpreadConstraints).toEqual(keys.map((topologyKey) => ({ ...common, topologyKey })))
    expect(VALUES[values]?.topologySpreadConstraints).toHaveLength(2)
    const own = podOf(rendered(`${values}.topologySpreadConstraints[0].topologyKey=rack`), deployment).topologySpreadConstraints
    expect(own?.map(({ topologyKey, labelSelector }) => [topologyKey, labelSelector])).toEqual([['rack', { matchLabels }]])
    const [chosen] = podOf(rendered(`${values}.topologySpreadConstraints[0].labelSelector.matchLabels.app=mine`), deployment)
      .topologySpreadConstraints ?? [{}]
    expect(chosen?.['labelSelector']).toEqual({ matchLabels: { app: 'mine' } })
    expect(podOf(rendered(`${values}.topologySpreadConstraints=null`), deployment)).not.toHaveProperty('topologySpreadConstraints')
  })

  it('resolve names as values say', () => {
    const objects = rendered(
      `${values}.dnsConfig.nameservers={10.0.0.53}`,
      `${values}.hostAliases[0].ip=10.1.2.3`,
      `${values}.hostAliases[0].hostnames={models.example.net}`,
    )
    expect(podOf(objects, deployment)).toMatchObject({
      dnsConfig: { nameservers: ['10.0.0.53'] },
      hostAliases: [{ ip: '10.1.2.3', hostnames: ['models.example.net'] }],
    })
  })
})

it('PodDisruptionBudgets have the bounds of their values', () => {
  const budget = (...set: readonly string[]): unknown => named(rendered(...set), 'PodDisruptionBudget').spec
  expect(budget()).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' })
  expect(budget('gateway.podDisruptionBudget.maxUnavailable=25%')).toMatchObject({ maxUnavailable: '25%' })
  const least = budget('gateway.podDisruptionBudget.minAvailable=3')
  expect([least, Object.keys(least as object)]).toEqual([
    expect.objectContaining({ minAvailable: 3 }),
    expect.not.arrayContaining(['maxUnavailable']),
  ])
})

it.each(['gateway', 'dashboard'])('the Service of the %s takes the fields of a load balancer', (program) => {
  const wanted = { type: 'LoadBalancer', ipFamilyPolicy: 'PreferDualStack', loadBalancerClass: 'edge', externalTrafficPolicy: 'Local' }
  const set = [...Object.entries(wanted).map(([name, value]) => `${name}=${value}`), 'loadBalancerSourceRanges={192.0.2.0/24}']
  const { spec } = named(rendered(...set.map((one) => `${program}.service.${one}`)), 'Service', `headgate-${program}`)
  expect(spec).toMatchObject({ ...wanted, loadBalancerSourceRanges: ['192.0.2.0/24'] })
  expect(Object.keys(named(rendered(), 'Service', `headgate-${program}`).spec)).toEqual(['type', 'selector', 'ports'])
})

it('redis.secretKeys names the keys of users and passwords in existingSecret', () => {
  const own = ['redis.trial.enabled=false', 'redis.trial.password=', 'redis.url=redis://redis:6379', 'redis.existingSecret=users']
  const objects = rendered(...own, 'redis.secretKeys.gatewayUsername=reader', 'redis.secretKeys.gatewayPassword=reader-secret')
  const env = (deployment: string): string => JSON.stringify(podOf(objects, deployment).containers[0]?.env)
  expect(env('headgate-gateway')).toContain('"secretKeyRef":{"name":"users","key":"reader"}')
  expect(env('headgate-gateway')).toContain('"key":"reader-secret"')
  expect(env('headgate-operator')).toContain('"key":"operator-username"')
})

it('a ServiceMonitor of another namespace selects the Services of the release', () => {
  const objects = rendered('monitoring.serviceMonitor.enabled=true', 'monitoring.serviceMonitor.namespace=monitoring')
  const monitor = named(objects, 'ServiceMonitor', 'headgate')
  expect([monitor.metadata.namespace, monitor.spec['namespaceSelector']]).toEqual(['monitoring', { matchNames: ['headgate'] }])
  expect(named(rendered('monitoring.serviceMonitor.enabled=true'), 'ServiceMonitor', 'headgate').metadata.namespace).toBe('headgate')
})

it('egress policies let each program reach name servers at the port of their pods, on OpenShift too', () => {
  const policies = rendered('networkPolicy.egress.enabled=true').filter(({ kind }) => kind === 'NetworkPolicy')
  const asking = policies.filter(({ spec }) => ((spec['egress'] as unknown[] | undefined) ?? []).length > 0)
  expect(asking.length).toBeGreaterThan(3)
  for (const { spec } of asking)
    for (const [port, protocol] of [53, 5353].flatMap((one) => [
      [one, 'UDP'],
      [one, 'TCP'],
    ]))
      expect(JSON.stringify(spec['egress'])).toContain(JSON.stringify({ port, protocol }))
})
