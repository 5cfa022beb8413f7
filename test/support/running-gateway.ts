/** A whole gateway over a projection in memory, on a loopback port. */
import { systemClock } from '#platform/clock.ts'
import { settingsWith } from '../../gateway/config.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { bodyLimits } from '../../gateway/http/body-budget.ts'
import { createGatewayServer } from '../../gateway/http/server.ts'
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import { MemoryUsage } from '../../standalone/memory-usage.ts'
import type { MemoryProjection } from '../../standalone/memory-projection.ts'
import { listening } from './listening.ts'
import { sharedBodyReader } from './shared-body-reader.ts'

const drop = (): void => undefined

/** Serves before it has its records: the caller starts `gateway`, and ends both with `stop`. */
export async function runningGateway(source: MemoryProjection, change: Partial<ConstructorParameters<typeof Gateway>[0]> = {}) {
  const gateway = new Gateway({
    settings: settingsWith({ podName: 'pod-1', accessLog: 'errors', maxBodyBytes: 1_000_000 }),
    ...{ source, clock: systemClock, log: { debug: drop, info: drop, warn: drop, error: drop }, version: '0', process: 'x' },
    ledger: new LeaseLedger({ store: new MemoryLedgerStore(() => Date.now()), clock: systemClock, process: 'x', live: () => 1 }),
    usage: new MemoryUsage(() => systemClock.now()),
    ...{ allowLoopback: true, bodyLimits: bodyLimits(2 ** 30), bodyReader: sharedBodyReader },
    ...change,
  })
  const server = createGatewayServer(gateway.app, gateway.errors)
  const url = `http://127.0.0.1:${await listening(server)}`
  const stop = async (): Promise<void> => {
    await gateway.stop()
    server.close()
    server.closeAllConnections()
  }
  return { gateway, url, stop }
}
