import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { variableOf } from '#platform/settings.ts'
import { GATEWAY_SETTINGS } from '../../gateway/config.ts'
import { MATRIX, SWITCHES } from '../support/chart-matrix.ts'
import { CHART, findHelm, helm, named, NEEDED, objectsOf, type Rendered, template, templateOf } from '../support/chart.ts'
import { codeBlocks } from '../support/markdown-page.ts'
import { alerts } from '../support/monitoring.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** The optional parts of the chart: traffic from outside, autoscaling, monitoring and `helm test`. */
const EXTRAS = MATRIX['extras'] ?? []

const kindsOf = (set: readonly string[]): string[] => objectsOf(template(set)).map(({ kind }) => kind)

function everyCombination(names: readonly string[]): string[][] {
  return names.reduce<string[][]>((all, name) => [...all, ...all.map((some) => [...some, name])], [[]])
}

beforeEach(({ skip }) => {
  skip(findHelm() === undefined, 'helm is not in the cache; `make test` builds it')
})

describe('autoscaling', () => {
  it('leaves the number of pods to the autoscaler, between its minReplicas and gateway.maxReplicas', () => {
    const objects = objectsOf(template(['gateway.autoscaling.enabled=true', 'gateway.autoscaling.minReplicas=3', 'gateway.maxReplicas=7']))
    expect(named(objects, 'Deployment').spec).not.toHaveProperty('replicas')
    expect(named(objects, 'HorizontalPodAutoscaler').spec).toMatchObject({
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'headgate-gateway' },
      minReplicas: 3,
      maxReplicas: 7,
    })
    expect(objects.filter(({ kind }) => kind === 'PodDisruptionBudget')).toHaveLength(2)
    const single = objectsOf(template(['gateway.autoscaling.enabled=true', 'gateway.autoscaling.minReplicas=1']))
    expect(single.filter(({ kind }) => kind === 'PodDisruptionBudget').map(({ metadata }) => metadata.name)).toEqual(['headgate-operator'])
  })

  it('gives the gateways the largest number of pods as MAX_REPLICAS, and no longer the fixed number', () => {
    const most = (...set: readonly string[]): unknown => {
      const { spec } = named(objectsOf(template(set)), 'Deployment').spec['template'] as { spec: { containers: Array<{ env: unknown[] }> } }
      return (spec.containers[0]?.env ?? []).find((one) => (one as { name: string }).name === 'MAX_REPLICAS')
    }
    expect(Object.keys(GATEWAY_SETTINGS.shape).map(variableOf)).toContain('MAX_REPLICAS')
    expect(most('gateway.replicas=30')).toMatchObject({ value: '30' })
    expect(most('gateway.replicas=30', 'gateway.autoscaling.enabled=true')).toMatchObject({ value: '20' })
  })

  it('removes one pod at a time, more slowly than a pod drains its streams', () => {
    const objects = objectsOf(template(['gateway.autoscaling.enabled=true']))
    const { scaleUp, scaleDown } = named(objects, 'HorizontalPodAutoscaler').spec['behavior'] as Record<string, Record<string, unknown>>
    const { terminationGracePeriodSeconds } = (named(objects, 'Deployment').spec['template'] as Rendered).spec
    const [only, ...others] = (scaleDown ?? {})['policies'] as Array<{ type: string; value: number; periodSeconds: number }>
    expect(only).toMatchObject({ type: 'Pods', value: 1 })
    expect(only?.periodSeconds).toBeGreaterThan(terminationGracePeriodSeconds as number)
    expect(others).toEqual([])
    expect(scaleUp).toMatchObject({ stabilizationWindowSeconds: 0 })
  })
})

describe('traffic from outside', () => {
  it('reaches the API port of the gateway alone, by Ingress and by HTTPRoute', () => {
    const objects = objectsOf(template(EXTRAS))
    const backend = { service: { name: 'headgate-gateway', port: { name: 'http' } } }
    expect(named(objects, 'Ingress').spec).toEqual({
      ingressClassName: 'nginx',
      tls: [{ secretName: 'models-tls', hosts: ['models.example.net'] }],
      rules: ['models.example.net', 'llm.example.net'].map((host) => ({
        host,
        http: { paths: [{ path: '/', pathType: 'Prefix', backend }] },
      })),
    })
    const { rules, ...spec } = named(objects, 'HTTPRoute').spec
    expect(spec).toEqual({ parentRefs: [{ name: 'public', namespace: 'infra' }], hostnames: ['models.example.net'] })
    expect(rules).toMatchObject([
      { timeouts: { request: '0s', backendRequest: '0s' }, backendRefs: [{ name: 'headgate-gateway', port: 8080 }] },
    ])
    const outside = JSON.stringify([named(objects, 'Ingress'), named(objects, 'HTTPRoute')])
    expect(outside).not.toMatch(/9090|metrics/)
  })

  it('is not buffered by nginx, not cut after a minute, and may have bodies as large as the gateway admits', () => {
    const size = ['gateway.maxBodyBytes=50000000', 'gateway.resources.limits.memory=2Gi']
    const set = ['gateway.ingress.enabled=true', 'gateway.ingress.hosts={a.example.net}', ...size]
    const annotations = named(objectsOf(template(set)), 'Ingress').metadata.annotations
    expect(annotations).toMatchObject({
      'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
      'nginx.ingress.kubernetes.io/proxy-request-buffering': 'off',
      'nginx.ingress.kubernetes.io/proxy-read-timeout': '3600',
      'nginx.ingress.kubernetes.io/proxy-body-size': '48m',
    })
    const own = [...set, String.raw`gateway.ingress.annotations.nginx\.ingress\.kubernetes\.io/proxy-read-timeout=60s`]
    expect(named(objectsOf(template(own)), 'Ingress').metadata.annotations).toMatchObject({
      'nginx.ingress.kubernetes.io/proxy-read-timeout': '60s',
    })
    expect(named(objectsOf(template([...set, 'gateway.ingress.nginxAnnotations=false'])), 'Ingress').metadata).not.toHaveProperty(
      'annotations',
    )
  })
})

describe('monitoring', () => {
  it.each(['serviceMonitor', 'podMonitor'])('scrapes the metrics port of operator and gateway by a %s', (monitor) => {
    const objects = objectsOf(template([`monitoring.${monitor}.enabled=true`, `monitoring.${monitor}.labels.release=prometheus`]))
    const kind = monitor === 'serviceMonitor' ? 'ServiceMonitor' : 'PodMonitor'
    const { metadata, spec } = named(objects, kind, 'headgate')
    expect(metadata.labels).toMatchObject({ release: 'prometheus' })
    expect(spec[monitor === 'serviceMonitor' ? 'endpoints' : 'podMetricsEndpoints']).toEqual([
      { port: 'metrics', path: '/metrics', interval: '30s' },
    ])
    expect(spec['selector']).toEqual({
      matchLabels: { 'app.kubernetes.io/name': 'headgate', 'app.kubernetes.io/instance': 'headgate' },
      matchExpressions: [{ key: 'app.kubernetes.io/component', operator: 'In', values: ['operator', 'gateway'] }],
    })
    for (const service of ['headgate-operator-metrics', 'headgate-gateway-metrics']) {
      const component = service.split('-')[1]
      expect(named(objects, 'Service', service).metadata.labels).toMatchObject({ 'app.kubernetes.io/component': component })
      expect(named(objects, 'Service', service).spec['ports']).toMatchObject([{ name: 'metrics' }])
    }
  })

  it('has every alert, for the namespace of the release, with a link where the page is published', () => {
    const { spec } = named(objectsOf(template(EXTRAS)), 'PrometheusRule', 'headgate')
    const groups = spec['groups'] as ReadonlyArray<{ readonly rules: ReadonlyArray<Record<string, unknown>> }>
    const rendered = groups.flatMap(({ rules }) => rules)
    const expected = alerts()
      .filter(({ alert }) => alert !== 'HeadgateSpendRestored' && !/^Headgate(Dashboard|Payment)/.test(alert))
      .map((rule) => ({
        ...rule,
        annotations: { ...rule.annotations, runbook_url: `https://docs.example.net/metrics.md#${rule.alert.toLowerCase()}` },
      }))
    expect(rendered).toEqual(expected)
    const withDashboard = template(['monitoring.prometheusRule.enabled=true', ...(MATRIX['dashboard'] ?? [])])
    for (const { alert } of alerts()) expect(withDashboard.stdout).toContain(`alert: ${alert}\n`)
    const withoutPayments = template(['monitoring.prometheusRule.enabled=true', ...(MATRIX['dashboard-postgres'] ?? [])])
    expect(withoutPayments.stdout).toContain('alert: HeadgateDashboardAbsent\n')
    expect(withoutPayments.stdout).not.toContain('alert: HeadgatePayment')
    const { stdout } = template(['monitoring.prometheusRule.enabled=true', 'nameOverride=hg'])
    expect(stdout).toContain('namespace="headgate"')
  })

  it('ships the complete dashboard in the place where the sidecar of Grafana finds it', () => {
    const { metadata, data } = named(objectsOf(template(['monitoring.dashboard.enabled=true'])), 'ConfigMap', 'headgate-dashboard')
    expect(metadata.labels).toMatchObject({ grafana_dashboard: '1' })
    const file = readFileSync(join(CHART, 'monitoring/dashboard.json'), 'utf8')
    expect(JSON.parse(data?.['headgate.json'] ?? '')).toEqual(JSON.parse(file))
  })
})

describe('helm test', () => {
  it('runs the image of the gateway, with the key of a Secret only where one is named', () => {
    const podOf = (...set: readonly string[]) => named(objectsOf(template(set)), 'Pod', 'headgate-test')
    const plain = podOf()
    expect(plain.metadata.annotations).toEqual({ 'helm.sh/hook': 'test', 'helm.sh/hook-delete-policy': 'before-hook-creation' })
    expect(JSON.stringify(plain)).not.toContain('SERVICE_API_KEY"')
    const [container] = podOf('tests.keySecret=my-key', 'tests.model=llama').spec['containers'] as ReadonlyArray<Record<string, unknown>>
    expect(container?.['image']).toBe('registry.example.net/headgate/gateway:0.1.0')
    expect(container?.['env']).toContainEqual({
      name: 'SERVICE_API_KEY',
      valueFrom: { secretKeyRef: { name: 'my-key', key: 'SERVICE_API_KEY' } },
    })
    expect(container?.['env']).toContainEqual({ name: 'MODEL', value: 'llama' })
    expect(kindsOf(['tests.enabled=false'])).not.toContain('Pod')
  })

  it('may reach the gateways and name servers alone, where egress is confined (rendered, not enforced here)', () => {
    const { spec } = named(objectsOf(template(EXTRAS)), 'NetworkPolicy', 'headgate-test')
    expect(spec).toMatchObject({
      podSelector: { matchLabels: { 'app.kubernetes.io/component': 'test' } },
      ingress: [],
      egress: [
        { ports: [{ port: 53 }, { port: 53 }, { port: 5353 }, { port: 5353 }] },
        { ports: [{ port: 8080 }, { port: 9090 }], to: [{ podSelector: { matchLabels: { 'app.kubernetes.io/component': 'gateway' } } }] },
      ],
    })
  })
})

describe('every combination of the extras', () => {
  const OWN_KIND: Readonly<Record<string, string>> = {
    autoscaling: 'HorizontalPodAutoscaler',
    ingress: 'Ingress',
    httpRoute: 'HTTPRoute',
    podMonitor: 'PodMonitor',
    rules: 'PrometheusRule',
    dashboard: 'ConfigMap',
  }

  it('renders, with the objects of enabled parts and without those of disabled parts', () => {
    const combinations = everyCombination(Object.keys(SWITCHES))
    expect(combinations).toHaveLength(256)
    for (const on of combinations) {
      const kinds = new Set(kindsOf(['crds.enabled=false', ...on.flatMap((name) => SWITCHES[name] ?? [])]))
      for (const [name, kind] of Object.entries(OWN_KIND)) expect(kinds.has(kind), `${kind} with ${on.join(', ')}`).toBe(on.includes(name))
      expect(kinds.has('Pod'), `Pod with ${on.join(', ')}`).toBe(!on.includes('no tests'))
    }
  })
})

describe('values that cannot work are refused:', () => {
  it.each([
    ['both monitors', 'monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true', /scraped twice/],
    ['an Ingress without a host', 'gateway.ingress.enabled=true', /gateway\.ingress\.hosts/],
    ['an HTTPRoute without a parent', 'gateway.httpRoute.enabled=true', /gateway\.httpRoute\.parentRefs/],
    ['a host with a scheme', 'gateway.ingress.hosts={https://models.example.net}', /hosts/],
    [
      'a least number of pods above the largest number',
      'gateway.autoscaling.enabled=true,gateway.autoscaling.minReplicas=30',
      /30 is more than gateway\.maxReplicas, 20/,
    ],
    ['autoscaling by nothing', 'gateway.autoscaling.enabled=true,gateway.autoscaling.targetCPU=', /no metric is left/],
    ['a policy that the autoscaler does not know', 'gateway.autoscaling.behavior.scaleUp.policies[0].type=Cores', /policies/],
    ['an interval that is none', 'monitoring.serviceMonitor.interval=often', /interval/],
    [
      'an alert that does not exist',
      'monitoring.prometheusRule.enabled=true,monitoring.prometheusRule.exclude={HeadgateNoLeadr}',
      /no alert "HeadgateNoLeadr"; the alerts are HeadgateGatewayAbsent, /,
    ],
    ['a misspelt value', 'monitoring.serviceMonitors.enabled=true', /serviceMonitors/],
  ])('%s', (_, set, message) => {
    const { ok, stderr } = template([set])
    expect(ok).toBe(false)
    expect(stderr).toMatch(message)
  })
})

describe('the README of the chart', () => {
  const blocks = codeBlocks(readFileSync(join(CHART, 'README.md'), 'utf8'))
  const commands = blocks.flatMap(({ text }) => text.replaceAll(/\s*\\\n\s*/g, ' ').match(/^(?:helm|  helm)\b.*$/gm) ?? [])

  it.each(commands.filter((command) => command.startsWith('helm install')))('has a command that renders: %s', (command) => {
    const set = [...command.matchAll(/ --set (\S+)/g)].map(([, values = '']) => values)
    const password = command.includes('redis.trial.enabled=false') ? [] : ['redis.trial.password=given-for-the-tests']
    expect(set.length).toBeGreaterThan(0)
    expect(templateOf([...set, ...password])).toMatchObject({ ok: true })
  })

  it.each(blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text))('has values that render: %s', (text) => {
    const file = join(temporaryFolder(), 'values.yaml')
    writeFileSync(file, text)
    const needed = NEEDED.flatMap((one) => ['--set', one])
    expect(helm('template', 'headgate', CHART, '-n', 'headgate', '--kube-version', '1.32.0', '--values', file, ...needed)).toMatchObject({
      ok: true,
    })
  })

  it('renders the Job of an uninstall alone', () => {
    expect(commands.join('\n')).toContain('--show-only templates/operator/uninstall.yaml')
    const needed = NEEDED.flatMap((one) => ['--set', one])
    const { stdout } = helm('template', 'headgate', CHART, '-n', 'headgate', ...needed, '--show-only', 'templates/operator/uninstall.yaml')
    expect(stdout.match(/^kind: .*$/gm)).toEqual(['kind: Job'])
  })
})
