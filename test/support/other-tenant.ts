/**
 * A tenant who does nothing wrong, beside one who does: its key is issued and suspended and its backend's Credential is rotated, each
 * measured until every gateway acts on it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startStubModel, type StubModel } from '../../standalone/stub-model.ts'
import { ask } from './ask.ts'
import { untilEveryGateway } from './gateway-answers.ts'
import { objectPath } from './kube-admin.ts'
import type { Lab } from './lab.ts'
import type { Program } from './program.ts'
import type { Stack } from './stack.ts'

/** ms from the API server's answer until every gateway acts. */
export interface ChangeTimes {
  readonly issued: number
  readonly suspended: number
  readonly rotated: number
}

const ROUNDS = 3
/** Twice the usual time, but never less than this: the test is about tenants, not about the machine, ms. */
const FLOOR_MS = 5_000
const DEADLINE_MS = 60_000
const POLL_MS = 10
const SERVICE = 'others-server'
const MODEL = 'others-model'
const SECRET = 'others-credential'
const GROUP = 'headgate.dev/v1alpha1'

/** One such tenant in a namespace of its own; `close` it in afterAll. */
export class OtherTenant {
  readonly namespace: string
  readonly #lab: Pick<Lab, 'record'>
  readonly #stack: Stack
  readonly #backend: StubModel
  /** Authorization header by the marker in the call's body. */
  readonly #seen: Map<string, string>
  #rounds = 0
  #questions = 0
  #caller = ''
  /** What a round took before anything went wrong: the worst of a few. */
  usual: ChangeTimes = { issued: 0, suspended: 0, rotated: 0 }

  private constructor(
    lab: Pick<Lab, 'record'>,
    stack: Stack,
    namespace: string,
    server: { backend: StubModel; seen: Map<string, string> },
  ) {
    this.namespace = namespace
    this.#lab = lab
    this.#stack = stack
    this.#backend = server.backend
    this.#seen = server.seen
  }

  /** Makes the namespace's model, Secret and key, and measures the usual times. */
  static async settle(lab: Lab, stack: Stack, namespace: string): Promise<OtherTenant> {
    const seen = new Map<string, string>()
    const backend = await startStubModel({
      host: lab.address.ip,
      onRequest: ({ headers, body }) => {
        const marker = /marker-\d+/.exec(body.toString())?.[0]
        if (marker !== undefined) seen.set(marker, headers.authorization ?? '')
      },
    })
    const tenant = new OtherTenant(lab, stack, namespace, { backend, seen })
    await tenant.#begin()
    tenant.usual = await tenant.#worstOf(ROUNDS)
    return tenant
  }

  /** One round: a new key works, then it is refused, and a new Credential of the backend is sent, on every gateway. */
  async round({ isRotating = true } = {}): Promise<ChangeTimes> {
    const name = `others-key-${this.#rounds++}`
    const credential = `others-upstream-credential-${this.#rounds}`
    const issued = await this.#issue(name)
    await this.#stack.kube.merge(this.#stack.path('ApiKey', name, this.namespace), { spec: { state: 'Suspended' } })
    const suspended = await untilEveryGateway(this.#stack.gateways, issued.value, 401, DEADLINE_MS)
    if (!isRotating) return { issued: issued.ms, suspended, rotated: 0 }
    await this.#writeCredential(credential)
    return { issued: issued.ms, suspended, rotated: await this.#untilSent(credential) }
  }

  /**
   * While a storm runs on the processors of this machine, the time says more about the processors than about tenants: the times are printed.
   * @throws when a change takes more than a minute
   */
  async expectServed(storm: string): Promise<void> {
    const now = await this.#worstOf(ROUNDS)
    process.stderr.write(`another tenant, in ms, usually ${JSON.stringify(this.usual)}, amid ${storm} ${JSON.stringify(now)}\n`)
  }

  /**
   * For trouble that stands.
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
    await this.#backend.close()
  }

  async #begin(): Promise<void> {
    const { kube } = this.#stack
    await this.#stack.exposeService(SERVICE, this.#backend.port, { namespace: this.namespace })
    await this.#writeCredential('others-upstream-credential-0')
    const service = { name: SERVICE, port: this.#backend.port }
    const backends = [{ name: 'one', service, messages: 'Native', authSecretRef: { name: SECRET, key: 'token' } }]
    await kube.apply({ apiVersion: GROUP, kind: 'ServedModel', metadata: { name: MODEL, namespace: this.namespace }, spec: { backends } })
    await this.#stack.untilCondition('ServedModel', MODEL, 'Ready', { namespace: this.namespace })
    this.#caller = await this.#stack.issueKey('others-caller', {}, this.namespace)
    await this.#untilSent('others-upstream-credential-0')
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

  async #issue(name: string): Promise<{ value: string; ms: number }> {
    const { kube } = this.#stack
    const spec = { models: ['*'] }
    await kube.apply({ apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace: this.namespace }, spec })
    const started = performance.now()
    const path = objectPath('v1', 'Secret', this.namespace, name)
    for (;;) {
      const data = (await kube.get(path))?.data as Record<string, string> | undefined
      const value = Buffer.from(data?.['SERVICE_API_KEY'] ?? '', 'base64').toString()
      if (value !== '') {
        await untilEveryGateway(this.#stack.gateways, value, 200, DEADLINE_MS)
        return { value, ms: performance.now() - started }
      }
      if (performance.now() - started > DEADLINE_MS) throw new Error(`the key of another tenant was not issued within ${DEADLINE_MS} ms`)
      await sleep(POLL_MS)
    }
  }

  async #writeCredential(value: string): Promise<void> {
    const { kube } = this.#stack
    const metadata = {
      name: SECRET,
      namespace: this.namespace,
      labels: { 'headgate.dev/upstream-auth': 'true' },
      annotations: { 'headgate.dev/upstream-hosts': `${SERVICE}.${this.namespace}.svc` },
    }
    await kube.apply({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: { token: Buffer.from(value).toString('base64') } })
    const model = this.#stack.path('ServedModel', MODEL, this.namespace)
    const annotations = { 'headgate.dev/reconcile-at': value } // Secrets cannot be watched: a change of the model has them read again
    if (await kube.get(model)) await kube.merge(model, { metadata: { annotations } })
  }

  /** Until a call over each gateway carries it. @returns ms */
  async #untilSent(credential: string): Promise<number> {
    const started = performance.now()
    const over = async (gateway: Program): Promise<void> => {
      while ((await this.#sentOver(gateway)) !== `Bearer ${credential}`) {
        if (performance.now() - started > DEADLINE_MS)
          throw new Error(`${gateway.spec.pod} does not send the new Credential after ${DEADLINE_MS} ms`)
        await sleep(POLL_MS)
      }
    }
    await Promise.all(this.#stack.gateways.map(over))
    return performance.now() - started
  }

  async #sentOver(gateway: Program): Promise<string | undefined> {
    const marker = `marker-${this.#questions++}`
    const messages = [{ role: 'user', content: marker }]
    await ask(this.#lab, gateway.url, { credential: this.#caller, model: MODEL, fields: { messages, max_tokens: 1 } })
    const sent = this.#seen.get(marker)
    this.#seen.delete(marker)
    return sent
  }
}
