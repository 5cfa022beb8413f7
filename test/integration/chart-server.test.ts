import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { findHelm, template } from '../support/chart.ts'
import { MATRIX } from '../support/chart-matrix.ts'
import { openLab } from '../support/lab.ts'

/** The API server checks a rendered chart: for unknown fields, CEL that does not compile, and pods beyond the restricted profile. */
const lab = openLab()

/** Kinds whose definitions other projects publish; `test/parts/foreign-crds.sh` fetches them. */
const FOREIGN = new Set(['HTTPRoute', 'ServiceMonitor', 'PodMonitor', 'PrometheusRule'])
const definitions = foreignDefinitions()

function foreignDefinitions(): string[] {
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'headgate/crds')
  const folders = existsSync(cache) ? readdirSync(cache).filter((name) => !name.startsWith('.')) : []
  return folders.slice(-1).flatMap((folder) => readdirSync(join(cache, folder)).map((file) => join(cache, folder, file)))
}

async function apply(name: string, yaml: string): Promise<string> {
  const file = join(lab.folder, `${name}.yaml`)
  writeFileSync(file, yaml)
  return lab.plane.kubectl('apply', '--dry-run=server', '--validate=strict', '--warnings-as-errors', '-f', file)
}

function rendered(set: readonly string[], isWanted: (kind: string) => boolean): string {
  const { ok, stdout, stderr } = template([...set, 'crds.enabled=false'])
  if (!ok) throw new Error(stderr)
  return stdout
    .split(/^---$/m)
    .filter((text) => isWanted(/^kind: (\w+)$/m.exec(text)?.[1] ?? ''))
    .join('---')
}

beforeAll(async () => {
  const restricted = { 'pod-security.kubernetes.io/warn': 'restricted' }
  for (const namespace of ['headgate', 'shop', 'lab', 'old', 'people']) await lab.plane.namespace(namespace, restricted)
  for (const file of definitions) {
    await lab.plane.kubectl('apply', '--server-side', '-f', file)
    await lab.plane.untilEstablished(file)
  }
})
afterAll(async () => {
  for (const file of definitions) await lab.plane.kubectl('delete', '--ignore-not-found', '-f', file)
})
beforeEach(({ skip }) => {
  skip(findHelm() === undefined, 'helm is not in the cache; `make test` builds it')
})

it.each(Object.entries(MATRIX))('the API server accepts every object of %s, without a warning', async (name, set) => {
  const said = await apply(
    `chart-${name}`,
    rendered(set, (kind) => !FOREIGN.has(kind)),
  )
  expect(said).toMatch(/^validatingadmissionpolicy\S* created \(server dry run\)$/m)
  expect(said).toMatch(/^job\.batch\/headgate-uninstall created \(server dry run\)$/m)
  expect(said).toMatch(/^pod\/headgate-test created \(server dry run\)$/m)
  if (name !== 'extras') return
  expect(said).toMatch(/^horizontalpodautoscaler\.autoscaling\/headgate-gateway created/m)
  expect(said).toMatch(/^ingress\.networking\.k8s\.io\/headgate-gateway created/m)
})

it('the API server accepts HTTPRoute, monitors and rules, with the definitions that their projects publish', async ({ skip }) => {
  skip(definitions.length === 0, 'the definitions are not in the cache; test/parts/foreign-crds.sh fetches them')
  const foreign = (kind: string): boolean => FOREIGN.has(kind)
  const extras = await apply('chart-foreign', rendered(MATRIX['extras'] ?? [], foreign))
  expect(extras.trim().split('\n').toSorted()).toEqual([
    'httproute.gateway.networking.k8s.io/headgate-gateway created (server dry run)',
    'prometheusrule.monitoring.coreos.com/headgate created (server dry run)',
    'servicemonitor.monitoring.coreos.com/headgate created (server dry run)',
  ])
  const relabelled = ['sourceLabels={__meta_kubernetes_pod_name}', 'targetLabel=instance', 'action=replace']
  const set = ['scrapeTimeout=10s', ...relabelled.map((one) => `relabelings[0].${one}`)].map((one) => `monitoring.podMonitor.${one}`)
  const pod = await apply('chart-pod-monitor', rendered(['monitoring.podMonitor.enabled=true', ...set], foreign))
  expect(pod).toMatch(/^podmonitor\.monitoring\.coreos\.com\/headgate created/)
  const wrong = rendered(['gateway.httpRoute.enabled=true', 'gateway.httpRoute.parentRefs[0].name=Not A Name'], foreign)
  await expect(apply('chart-wrong-route', wrong.replace('PathPrefix', 'Prefix')), 'the definition is asked').rejects.toThrow(/Prefix/)
})
