/** A Headgate whose operator is killed at a chosen write to the API server or to Redis, and is started again after each end. */
import { type CrashProxy, kubeCrashProxy, type KillAt, redisCrashProxy, WriteGate } from './crash-proxy.ts'
import type { Lab } from './lab.ts'
import type { Stack, StackOptions } from './stack.ts'
import { waitFor } from './wait-for.ts'

/** A killed leader is replaced within about a second. */
const QUICK_LEASE = { LEASE_DURATION_SECONDS: '1', LEASE_RENEW_SECONDS: '0.8', LEASE_RETRY_SECONDS: '0.2' }
/** Time without a write after which the operator has usually nothing left to do, ms. */
const QUIET_MS = 2_200

export class CrashingStack {
  readonly stack: Stack
  readonly gate: WriteGate
  /** Ends of the operator that no test has caused. */
  readonly crashes: string[] = []
  readonly #proxies: CrashProxy[] = []
  #isClosed = false

  static async open(lab: Lab, options: StackOptions, plane = lab.plane): Promise<CrashingStack> {
    const gate = new WriteGate()
    const kube = await kubeCrashProxy(plane, gate)
    const operatorEnv = { ...QUICK_LEASE, ...options.operatorEnv }
    const stack = await lab.stack({ ...options, apiServer: kube.url, operatorEnv, operators: 0, start: false }, plane)
    const redis = await redisCrashProxy(stack.redis.ip, stack.redis.port, gate)
    await stack.addOperator({ env: { REDIS_URL: redis.url }, start: false })
    const crashing = new CrashingStack(stack, gate, [kube, redis])
    await stack.operator.launch()
    void crashing.#restartWheneverItEnds() // with its short election times it may end before the gateways are ready
    await Promise.all(stack.gateways.map((gateway) => gateway.start()))
    return crashing
  }

  private constructor(stack: Stack, gate: WriteGate, proxies: readonly CrashProxy[]) {
    this.stack = stack
    this.gate = gate
    this.#proxies.push(...proxies)
  }

  close(): void {
    this.#isClosed = true
    for (const proxy of this.#proxies) proxy.close()
  }

  /** The operator dies at a write from now on. */
  arm(at: KillAt): void {
    this.gate.arm(at, () => this.stack.operator.kill('SIGKILL'))
  }

  async leadsAgain(): Promise<void> {
    await waitFor('the operator to be ready', () => this.stack.operator.isReady(), { deadlineMs: 30_000 })
  }

  /** Waits until no write comes for a while, ms. A mark that waits longer for another write counts as a write of the next schedule. */
  async quiet(quietMs = QUIET_MS): Promise<void> {
    const { gate } = this
    await waitFor(
      'the operator to have nothing left to write',
      async () => {
        const count = gate.seen.length
        await new Promise((resolve) => setTimeout(resolve, quietMs)) // no event announces the absence of a write
        return gate.seen.length === count
      },
      { deadlineMs: 30_000 },
    )
  }

  /** Starts the operator again, as a kubelet does. A busy machine may lose a Lease of one second; any other exit of the operator is a failure. */
  async #restartWheneverItEnds(): Promise<void> {
    const { operator } = this.stack
    for (;;) {
      const { code, signal } = await operator.process.ended
      if (this.#isClosed) return
      const lastLine = operator.process.log().trimEnd().split('\n').at(-1) ?? ''
      if (signal !== 'SIGKILL' && !lastLine.includes('leadership was lost')) this.crashes.push(`exit code ${code}: ${lastLine}`)
      await operator.launch()
    }
  }
}
