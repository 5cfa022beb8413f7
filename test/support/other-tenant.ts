/**
 * A well-behaved tenant beside a badly behaved one. Its keys are issued and suspended and its backend's Credential is rotated, each until the
 * change has taken effect on every gateway. `make bench` measures the times.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { ask } from './ask.ts'
import { untilEveryGateway } from './gateway-answers.ts'
import { objectPath } from './kube-admin.ts'
import type { Lab } from './lab.ts'
import type { Stack } from './stack.ts'
import { waitFor } from './wait-for.ts'

const GROUP = 'headgate.dev/v1alpha1'
const [SERVICE, MODEL, SECRET] = ['others-server', 'others-model', 'others-credential'] as const
/** Tests give the tenant budgets of money, and a key whose every model has no price is not Ready. */
const PRICING = { inputPerMillion: '1', outputPerMillion: '1' }
/** The gateway forwards it as `x-session-id`. */
const OWN_CALL = 'call-of-the-tenant'

/** One such tenant in a namespace of its own; `close` it in afterAll. */
export class OtherTenant {
  readonly model = MODEL
  readonly namespace: string
  readonly #lab: Lab
  readonly #stack: Stack
  readonly #server: StubModel
  /** The Authorization header of the tenant's last own call at its model server; calls of a test may come between. */
  #sent: string | undefined
  #caller = ''
  #rounds = 0

  private constructor(lab: Lab, stack: Stack, namespace: string, server: StubModel) {
    this.namespace = namespace
    this.#lab = lab
    this.#stack = stack
    this.#server = server
  }

  static async settle(lab: Lab, stack: Stack, namespace: string): Promise<OtherTenant> {
    let onRequest = (_headers: IncomingHttpHeaders): void => undefined
    const server = await startStubModel({ host: lab.address.ip, onRequest: ({ headers }) => onRequest(headers) })
    const tenant = new OtherTenant(lab, stack, namespace, server)
    onRequest = (headers) => void (headers['x-session-id'] === OWN_CALL && (tenant.#sent = headers.authorization))
    await tenant.#begin()
    return tenant
  }

  /**
   * One round: a new key works, then it is refused, and a new Credential of the backend is sent, on every gateway.
   * @param isRotating false where kubelets cannot read Secrets
   * @throws when a change has no effect within a minute
   */
  async expectServed({ isRotating = true } = {}): Promise<void> {
    const { kube, gateways } = this.#stack
    const round = (this.#rounds += 1)
    const name = `others-key-${round}`
    await kube.apply({ apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace: this.namespace }, spec: { models: ['*'] } })
    const value = await this.#valueOf(name)
    await untilEveryGateway(gateways, value, 200)
    await kube.merge(this.#stack.path('ApiKey', name, this.namespace), { spec: { state: 'Suspended' } })
    await untilEveryGateway(gateways, value, 401)
    if (isRotating) await this.#rotate(`others-upstream-credential-${round}`)
  }

  async expectServedDuring(work: Promise<unknown>): Promise<void> {
    let isOver = false
    const over = work.finally(() => (isOver = true))
    over.catch(() => undefined) // awaited below, after the rounds
    do await this.expectServed()
    while (!isOver)
    await over
  }

  async close(): Promise<void> {
    await this.#server.close()
  }

  async #begin(): Promise<void> {
    const { namespace } = this
    const { port } = this.#server
    await this.#stack.exposeService(SERVICE, port, { namespace })
    const labels = { 'headgate.dev/upstream-auth': 'true' }
    const annotations = { 'headgate.dev/upstream-hosts': `${SERVICE}.${namespace}.svc` }
    await this.#stack.kube.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: SECRET, namespace, labels, annotations }, data: {} })
    const backend = { name: 'one', service: { name: SERVICE, port }, messages: 'Native', authSecretRef: { name: SECRET, key: 'token' } }
    await this.#stack.apply('ServedModel', MODEL, { backends: [backend], pricing: PRICING }, namespace)
    this.#caller = await this.#stack.issueKey('others-caller', {}, namespace)
    await this.#rotate('others-upstream-credential-0')
    await this.#stack.untilCondition('ServedModel', MODEL, 'Ready', { namespace })
  }

  #valueOf(name: string): Promise<string> {
    return waitFor(`the value of ${name}`, async () => await this.#stack.value(name, this.namespace))
  }

  async #rotate(value: string): Promise<void> {
    const { kube, gateways } = this.#stack
    await kube.merge(objectPath('v1', 'Secret', this.namespace, SECRET), { data: { token: Buffer.from(value).toString('base64') } })
    const annotations = { 'headgate.dev/reconcile-at': value } // Secrets cannot be watched: a change of the model has them read again
    await kube.merge(this.#stack.path('ServedModel', MODEL, this.namespace), { metadata: { annotations } })
    for (const { url, spec } of gateways) {
      const isSent = async (): Promise<boolean> => {
        this.#sent = undefined
        await ask(this.#lab, url, {
          credential: this.#caller,
          model: MODEL,
          fields: { max_tokens: 1 },
          headers: { 'x-session-id': OWN_CALL },
        })
        return this.#sent === `Bearer ${value}`
      }
      await waitFor(`${spec.pod} to send the new Credential`, isSent, { deadlineMs: 60_000 })
    }
  }
}
