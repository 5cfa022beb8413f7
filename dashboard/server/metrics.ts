/** The metrics of the dashboard. No label holds a person, an address or a path with parameters. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

export type DashboardMetrics = ReturnType<typeof createDashboardMetrics>

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1, 3, 10]

export interface Gauges {
  /** Mails that wait to be sent. */
  readonly waitingMails: () => Promise<number>
  /** Passwords that wait for their turn to be checked. */
  readonly waitingHashes: () => number
}

export function createDashboardMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const answers = new Histogram({
    name: 'headgate_dashboard_request_seconds',
    help: 'Time of answers by method, route and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: SECONDS,
    registers: [registry],
  })
  const mails = new Counter({
    name: 'headgate_dashboard_mails_total',
    help: 'Tries to send a mail by outcome: sent, failed (tried again), given-up.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  return {
    registry,
    answered: (method: string, route: string, status: number, seconds: number): void =>
      answers.observe({ method, route, status: String(status) }, seconds),
    mail: (outcome: string): void => mails.inc({ outcome }),
    /** Registers what is read at each scrape. */
    watch: ({ waitingMails, waitingHashes }: Gauges): void => {
      new Gauge({
        name: 'headgate_dashboard_outbox_mails',
        help: 'Mails that wait to be sent.',
        registers: [registry],
        async collect() {
          this.set(await waitingMails())
        },
      })
      new Gauge({
        name: 'headgate_dashboard_waiting_passwords',
        help: 'Passwords that wait for their turn to be checked.',
        registers: [registry],
        collect() {
          this.set(waitingHashes())
        },
      })
    },
  }
}
