/**
 * The payments program as a process of its own on a real API server, with the rights of the chart and no others, at a stand-in for Stripe. Each of its
 * requests, to the API server and to the provider, passes a gate that can kill it there.
 */
import { execFile } from 'node:child_process'
import { createServer as createTlsServer } from 'node:https'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { StubEvent } from '../../examples/stub-stripe/state.ts'
import { StubStripe } from '../../examples/stub-stripe/stub-stripe.ts'
import type { ControlPlane } from './control-plane.ts'
import { certificate, closeAll, type CrashProxy, forward, type KillAt, WriteGate } from './crash-proxy.ts'
import { freePort } from './free-port.ts'
import type { Lab } from './lab.ts'
import { listening } from './listening.ts'
import { Program } from './program.ts'
import { waitFor } from './wait-for.ts'

const KEY = 'sk_live_of_the_tests'
const WEBHOOK_SECRET = 'whsec_of_the_tests_0123456789'
export const PAYMENTS_TOKEN = 'a token of the tests that is long enough'
const CREDITS = '/apis/headgate.dev/v1alpha1/credits'
const SWEPT = 'headgate_payments_last_sweep_timestamp_seconds'

/** Amounts of `headgate ledger`, in micro-units. @param url of the usage interface */
export async function ledgerOf(lab: Lab, account: string, { url, token }: { url: string; token: string }): Promise<readonly bigint[]> {
  const args = [join(lab.folder, 'dist/headgate.js'), 'ledger', account, '--url', url, '--output', 'json']
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: { PATH: process.env.PATH, HEADGATE_USAGE_TOKEN: token } })
  const { rows } = JSON.parse(stdout) as { rows: ReadonlyArray<{ amount: string }> }
  return rows.map(({ amount }) => microsIn(amount))
}

/** @param amount decimal text @returns micro-units */
export function microsIn(amount: string): bigint {
  const [whole = '', fraction = ''] = amount.split('.')
  return BigInt(`${whole}${fraction.padEnd(6, '0')}`)
}

export interface Payer {
  readonly name: string
  readonly uid: string
}

export interface PaymentsProgramOptions {
  readonly lab: Lab
  readonly plane: ControlPlane
  /** Origin of the dashboard. */
  readonly dashboardURL?: string
}

export class PaymentsProgram {
  readonly stripe = new StubStripe({ key: KEY, webhookSecret: WEBHOOK_SECRET })
  readonly gate = new WriteGate()
  readonly plane: ControlPlane
  readonly checkoutURL: string
  readonly program: Program
  readonly #proxies: CrashProxy[]
  #isClosed = false
  #isDown = false
  #counts: (request: string) => boolean = () => true

  private constructor(plane: ControlPlane, checkoutPort: number, program: Program) {
    this.plane = plane
    this.checkoutURL = `http://${program.spec.ip}:${checkoutPort}`
    this.program = program
    this.#proxies = []
  }

  static async start({ lab, plane, dashboardURL = 'http://localhost:8090' }: PaymentsProgramOptions): Promise<PaymentsProgram> {
    const { folder, address } = lab
    const kubeconfig = join(folder, 'payments.kubeconfig')
    const checkoutPort = await freePort()
    const env = {
      ...{ KUBECONFIG: kubeconfig, CHECKOUT_PORT: String(checkoutPort), DASHBOARD_URL: dashboardURL, INSTALLATION: 'tests' },
      ...{ STRIPE_SECRET_KEY: KEY, STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET, PAYMENTS_TOKEN },
    }
    const program = await Program.prepare({ program: 'payments', pod: 'payments-0', ip: address.ip, folder, env })
    const payments = new PaymentsProgram(plane, checkoutPort, program)
    const kube = await payments.#kubeProxy()
    payments.#proxies.push(kube)
    payments.#gateProvider()
    payments.stripe.url = `http://127.0.0.1:${await listening(payments.stripe.server)}`
    await plane.kubeconfigFor('headgate', 'headgate-payments', kubeconfig, kube.url)
    await program.launch({ STRIPE_URL: payments.stripe.url })
    void payments.#restartWheneverItEnds()
    await payments.ready()
    return payments
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.program.process.running) await this.program.stop()
    for (const proxy of this.#proxies) proxy.close()
    closeAll(this.stripe.server)
  }

  /** Kills the program, and lets it lie. */
  async down(): Promise<void> {
    this.#isDown = true
    await this.program.kill('SIGKILL')
  }

  async up(): Promise<void> {
    await this.program.launch({ STRIPE_URL: this.stripe.url })
    this.#isDown = false
    void this.#restartWheneverItEnds()
    await this.ready()
  }

  /** The program dies at a request from now on. @param counts which requests count; default: all */
  arm(at: KillAt, counts: (request: string) => boolean = () => true): void {
    this.#counts = counts
    this.gate.arm(at, () => this.program.kill('SIGKILL'))
  }

  /** Runs, and has swept since its start. */
  async ready(): Promise<void> {
    await waitFor('payments to have swept', async () => ((await this.program.metric(SWEPT)) ?? 0) > 0)
  }

  /** What the provider sends. @returns the status of the answer; 0 without one */
  async deliver(event: StubEvent | undefined = this.stripe.state.events.at(-1)): Promise<number> {
    if (event === undefined) throw new Error('nothing has happened')
    const { body, signature } = this.stripe.signed(event)
    const headers = { 'stripe-signature': signature, 'content-type': 'application/json' }
    return await fetch(`${this.program.url}/webhooks/stripe`, { method: 'POST', headers, body }).then(
      ({ status }) => status,
      () => 0,
    )
  }

  /** What the dashboard asks when a person comes back. @returns the status of the answer; 0 without one */
  async comeBack(account: Payer, session: string): Promise<number> {
    const answer = await this.ask('/top-up', { account, session }).catch(() => undefined)
    return answer?.status ?? 0
  }

  /** Asks for a page until it is there. @returns the id of its session */
  async open(account: Payer, amount: string): Promise<string> {
    const attempt = `attempt-of-${account.name}`
    return await waitFor('a page to pay', async () => {
      const answer = await this.ask('/checkout', { account, amount, email: 'maya@fernwood.example', attempt })
      return ((await answer.json()) as { url?: string }).url?.split('/').at(-1)
    })
  }

  /** `TopUp 10 pi_1`: the Credits of an account. */
  async creditsOf({ uid }: Payer): Promise<readonly string[]> {
    const stored = (await this.plane.admin.list(CREDITS)).map(({ spec }) => spec as Record<'type' | 'amount' | 'reference', string> & Owned)
    return stored.filter(({ accountRef }) => accountRef.uid === uid).map(({ type, amount, reference }) => `${type} ${amount} ${reference}`)
  }

  async ask(path: string, body: object): Promise<Response> {
    const headers = { authorization: `Bearer ${PAYMENTS_TOKEN}`, 'content-type': 'application/json' }
    return await fetch(`${this.checkoutURL}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  /** As the kubelet does. */
  async #restartWheneverItEnds(): Promise<void> {
    for (;;) {
      const { signal, code } = await this.program.process.ended
      if (this.#isClosed || this.#isDown) return
      if (signal !== 'SIGKILL') throw new Error(`payments has ended with ${code}:\n${this.program.process.log().slice(-2_000)}`)
      await this.program.launch({ STRIPE_URL: this.stripe.url })
    }
  }

  #verdictOn(request: string): 'pass' | 'before' | 'after' {
    return this.#counts(request) ? this.gate.verdictOn(request) : 'pass'
  }

  /** All requests count, also questions. */
  async #kubeProxy(): Promise<CrashProxy> {
    const { plane, gate } = this
    const { key, cert, ca } = await certificate(plane)
    const server = createTlsServer({ key, cert }, (incoming, outgoing) => {
      const verdict = this.#verdictOn(`${incoming.method} ${(incoming.url ?? '').replace(/[?-].*/, '')}`)
      if (verdict === 'before') return void gate.pull()
      forward(incoming, outgoing, { plane, ca }, (answer) => {
        if (verdict === 'after') return void answer.resume().once('end', () => void gate.pull())
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      })
    })
    return { url: `https://${plane.address.ip}:${await listening(server, plane.address.ip)}`, close: () => closeAll(server) }
  }

  #gateProvider(): void {
    const { server } = this.stripe
    const [answer] = server.listeners('request')
    server.removeAllListeners('request').on('request', (request, response) => {
      const verdict = this.#verdictOn(`${request.method} ${(request.url ?? '').replace(/(\?|\/cs_).*/, '')}`)
      if (verdict === 'before') return void this.gate.pull()
      if (verdict === 'after') response.end = () => (void this.gate.pull(), response) // it was done, and nobody hears of it
      answer?.call(server, request, response)
    })
  }
}

interface Owned {
  readonly accountRef: { readonly uid: string }
}
