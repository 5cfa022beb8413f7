/**
 * A well-behaved tenant beside a badly behaved one. Its key is issued and suspended and its backend's Credential is rotated, each
 * measured until the change has taken effect on every gateway.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Lab } from './lab.ts'
import type { Stack } from './stack.ts'
import { type ChangeTimes, type RoundDone, type RoundWanted, TENANT, TENANT_GROUP, type TenantSite } from './tenant-protocol.ts'

const ROUNDS = 3
/** Twice the usual time, but never less than this: the test is about tenants, not about the machine, ms. */
const FLOOR_MS = 5_000

/** One such tenant in a namespace of its own; `close` it in afterAll. */
export class OtherTenant {
  readonly namespace: string
  readonly #lab: Pick<Lab, 'record'>
  readonly #stack: Stack
  readonly #rounds: Worker
  #count = 0
  #caller = ''
  /** The times of a round before the trouble: the worst of a few rounds. */
  usual: ChangeTimes = { issued: 0, suspended: 0, rotated: 0 }

  private constructor(lab: Pick<Lab, 'record'>, stack: Stack, namespace: string, rounds: Worker) {
    this.namespace = namespace
    this.#lab = lab
    this.#stack = stack
    this.#rounds = rounds
  }

  /** Makes the namespace's model, Secret and key, and measures the usual times. */
  static async settle(lab: Lab, stack: Stack, namespace: string): Promise<OtherTenant> {
    const { server, address } = stack.site.plane
    const site: TenantSite = { server, planeFolder: address.folder, namespace, host: lab.address.ip }
    const rounds = new Worker(new URL('./tenant-rounds.ts', import.meta.url), { workerData: site })
    const [{ port }] = (await once(rounds, 'message')) as [{ port: number }]
    const tenant = new OtherTenant(lab, stack, namespace, rounds)
    await tenant.#begin(port)
    tenant.usual = await tenant.#worstOf(ROUNDS)
    return tenant
  }

  /** One round: a new key works, then it is refused, and a new Credential of the backend is sent, on every gateway. */
  async round({ isRotating = true } = {}): Promise<ChangeTimes> {
    return this.#run(isRotating ? 'all' : 'keys')
  }

  /**
   * Only prints the times: during a storm on this machine they say more about its processors than about tenants.
   * @throws when a change takes more than a minute
   */
  async expectServed(storm: string): Promise<void> {
    const now = await this.#worstOf(ROUNDS)
    process.stderr.write(`another tenant, in ms, usually ${JSON.stringify(this.usual)}, during ${storm} ${JSON.stringify(now)}\n`)
  }

  /**
   * For a failure that lasts.
   * @param isRotating false where kubelets cannot read Secrets either
   * @throws when the worst of a few rounds takes more than twice the usual time
   */
  async expectUnharmed({ rounds = ROUNDS, isRotating = true } = {}): Promise<void> {
    const worst = await this.#worstOf(rounds, isRotating)
    process.stderr.write(`another tenant, in ms, usually ${JSON.stringify(this.usual)}, beside what stands ${JSON.stringify(worst)}\n`)
    const isSlow = (change: keyof ChangeTimes): boolean => worst[change] > Math.max(2 * this.usual[change], FLOOR_MS)
    const slow = (['issued', 'suspended', 'rotated'] as const).filter(isSlow)
    if (slow.length > 0)
      throw new Error(`slow for another tenant: ${slow.join(', ')}; ${JSON.stringify({ usual: this.usual, now: worst })}`)
  }

  async close(): Promise<void> {
    await this.#rounds.terminate()
  }

  async #begin(port: number): Promise<void> {
    const { kube } = this.#stack
    const { namespace } = this
    await this.#stack.exposeService(TENANT.service, port, { namespace })
    const metadata = {
      name: TENANT.secret,
      namespace,
      labels: { 'headgate.dev/upstream-auth': 'true' },
      annotations: { 'headgate.dev/upstream-hosts': `${TENANT.service}.${namespace}.svc` },
    }
    const token = Buffer.from('others-upstream-credential-0').toString('base64')
    await kube.apply({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: { token } })
    const service = { name: TENANT.service, port }
    const backends = [{ name: 'one', service, messages: 'Native', authSecretRef: { name: TENANT.secret, key: 'token' } }]
    await kube.apply({ apiVersion: TENANT_GROUP, kind: 'ServedModel', metadata: { name: TENANT.model, namespace }, spec: { backends } })
    await this.#stack.untilCondition('ServedModel', TENANT.model, 'Ready', { namespace })
    this.#caller = await this.#stack.issueKey('others-caller', {}, namespace)
    await this.#run('first-credential')
  }

  async #worstOf(rounds: number, isRotating = true): Promise<ChangeTimes> {
    let worst: ChangeTimes = { issued: 0, suspended: 0, rotated: 0 }
    for (let i = 0; i < rounds; i++) {
      const times = await this.round({ isRotating })
      worst = {
        issued: Math.max(worst.issued, times.issued),
        suspended: Math.max(worst.suspended, times.suspended),
        rotated: Math.max(worst.rotated, times.rotated),
      }
    }
    return worst
  }

  async #run(changes: RoundWanted['changes']): Promise<ChangeTimes> {
    const gateways = this.#stack.gateways.map(({ url, spec }) => ({ url, pod: spec.pod }))
    const round = changes === 'first-credential' ? -1 : this.#count++
    const wanted: RoundWanted = { round, gateways, caller: this.#caller, changes }
    this.#rounds.postMessage(wanted)
    const [{ times, why, answers }] = (await once(this.#rounds, 'message')) as [RoundDone]
    for (const answer of answers) this.#lab.record(answer)
    if (times === undefined) throw new Error(`another tenant: ${why}`)
    return times
  }
}
