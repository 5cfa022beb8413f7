/** The metrics of the payments program. No label holds an account, an amount or an id. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'

export type PaymentsMetrics = ReturnType<typeof createPaymentsMetrics>

export function createPaymentsMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const events = new Counter({
    name: 'headgate_payments_events_total',
    help: 'Events of the provider by type and outcome: credits, unpaid, foreign, refused, failed (sent again).',
    labelNames: ['type', 'outcome'],
    registers: [registry],
  })
  const alarms = new Counter({
    name: 'headgate_payments_alarms_total',
    help: 'Payments that somebody must look at; the log says why.',
    registers: [registry],
  })
  const swept = new Gauge({
    name: 'headgate_payments_last_sweep_timestamp_seconds',
    help: 'When all payments of the last two days were last settled.',
    registers: [registry],
  })
  return {
    registry,
    event: (type: string, outcome: string): void => events.inc({ type, outcome }),
    alarm: (): void => alarms.inc(),
    swept: (isWhole: boolean): void => {
      if (isWhole) swept.setToCurrentTime()
    },
  }
}
