/** Runs the commands that the README gives for a cluster, as the README has them, and then `helm test` and an upgrade. */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readQuickstart } from '../support/documents.ts'
import { CommandError, progress, timed } from './cluster.ts'
import { useCluster } from './use-cluster.ts'

const { notRun, script, commands } = readQuickstart('README.md')

/** Ends the background jobs that the reader would leave running. */
const END_JOBS = "trap 'kill $(jobs -p)' EXIT\n"

const MANIFESTS = join(import.meta.dirname, 'manifests')

const { cluster, setUpSeconds } = useCluster()

const seconds = (from: number): number => (performance.now() - from) / 1000

async function upgrade(...set: readonly string[]): Promise<string> {
  const flags = set.flatMap((one) => ['--set', one])
  return cluster.helm('upgrade', 'headgate', 'charts/headgate', '-n', 'headgate', '--reuse-values', '--wait', '--timeout', '120s', ...flags)
}

describe('the README', () => {
  it('takes a reader from an empty cluster to the first answer by its own commands', async () => {
    expect(notRun, 'startCluster makes the cluster and loads the images instead').toEqual(['kind create cluster', 'make kind-load'])
    const start = performance.now()
    const said = await cluster.shell(END_JOBS + script)
    const minutes = (from: number): string => (from / 60).toFixed(1)
    const pasted = seconds(start)
    progress(`quickstart: ${commands.length} commands after "${notRun.join('" and "')}"`)
    progress(
      `quickstart: ${minutes(pasted)} minutes to the first answer, ${minutes(pasted + setUpSeconds())} with images, cluster and load`,
    )
    expect(said).toMatch(/^servedmodel\S* condition met\napikey\S* condition met$/m)
    const answer = JSON.parse(said.slice(said.lastIndexOf('\n{') + 1)) as { choices: ReadonlyArray<{ message: { content: string } }> }
    expect(answer.choices[0]?.message.content).toContain('Good morning!')
  })

  it('leaves a key with limits that both gateway pods hold', async () => {
    const key = JSON.parse(await cluster.kubectl('-n', 'demo', 'get', 'apikey', 'first-key', '-o', 'json')) as Record<string, unknown>
    expect(key).toMatchObject({
      spec: { limits: { requestsPerMinute: expect.anything() } },
      status: { programmed: { ready: 2, total: 2 } },
    })
    const { conditions } = key['status'] as { conditions: unknown }
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'LimitsEnforceable', status: 'True' }))
  })
})

describe('helm test', () => {
  it('passes under the restricted profile, and says that it called no model', async () => {
    await cluster.kubectl('label', 'namespace', 'headgate', 'pod-security.kubernetes.io/enforce=restricted')
    const said = await timed('helm test', () => cluster.helm('test', 'headgate', '-n', 'headgate', '--logs', '--timeout', '60s'))
    expect(said).toMatch(/^ok: a gateway pod is ready/m)
    expect(said).toMatch(/^ok: a call without a key is refused/m)
    expect(said).toContain('skipped: no model was called; set tests.keySecret')
  })

  it('calls a model with the Secret of a key', async () => {
    await cluster.kubectl('apply', '-f', join(MANIFESTS, 'helm-test-key.yaml'))
    await cluster.kubectl('-n', 'headgate', 'wait', '--for=condition=Ready', '--timeout=60s', 'servedmodel/helm-test', 'apikey/helm-test')
    await upgrade('tests.keySecret=helm-test')
    const said = await cluster.helm('test', 'headgate', '-n', 'headgate', '--logs', '--timeout', '60s')
    expect(said).toMatch(/^ok: model helm-test answers/m)
  })

  it('fails for a key that does not work, and shows the answer but not the key', async () => {
    const value = `sk-${'wrong'.repeat(8)}`
    await cluster.kubectl('-n', 'headgate', 'create', 'secret', 'generic', 'wrong-key', `--from-literal=SERVICE_API_KEY=${value}`)
    await upgrade('tests.keySecret=wrong-key')
    await expect(cluster.helm('test', 'headgate', '-n', 'headgate', '--timeout', '60s')).rejects.toThrow(CommandError)
    const log = await cluster.kubectl('-n', 'headgate', 'logs', 'headgate-test')
    expect(log).toMatch(/^failed: GET \S+\/v1\/models answered 401, not 200/m)
    expect(log).not.toContain(value)
  })
})

describe('an upgrade', () => {
  it('to autoscaling keeps two gateway pods, and the API server takes Ingress and autoscaler', async () => {
    await timed('helm upgrade to autoscaling and ingress', () =>
      upgrade('gateway.autoscaling.enabled=true', 'gateway.ingress.enabled=true', 'gateway.ingress.hosts={models.example.net}'),
    )
    const replicasOf = () => cluster.kubectl('-n', 'headgate', 'get', 'deployment', 'headgate-gateway', '-o', 'jsonpath={.spec.replicas}')
    expect(await replicasOf(), 'no pod was removed').toBe('2')
    const autoscaler = await cluster.kubectl('-n', 'headgate', 'get', 'hpa', 'headgate-gateway', '-o', 'jsonpath={.spec.minReplicas}')
    expect(autoscaler).toBe('2')
    const replicas = () =>
      cluster.kubectl('-n', 'headgate', 'get', 'deployment', 'headgate-gateway', '-o', 'jsonpath={.status.readyReplicas}')
    expect(await replicas()).toBe('2')
    await upgrade('gateway.autoscaling.targetCPU=500m')
    expect(await replicasOf(), 'nor by the next upgrade').toBe('2')
    await expect.poll(replicas, { timeout: 60_000, interval: 500 }).toBe('2')
    await upgrade('tests.keySecret=helm-test')
    expect(await cluster.helm('test', 'headgate', '-n', 'headgate', '--logs', '--timeout', '60s')).toMatch(/^ok: model helm-test answers/m)
  })
})
