/** The metrics of the dashboard. No label holds a person, an address or a path with parameters. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

export type DashboardMetrics = ReturnType<typeof createDashboardMetrics>

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1, 3, 10]
/** Any other method counts as `other`: clients may send any word, and the number of series must have a bound. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'])

/** What is read at each scrape. */
export interface Gauges {
  /** Mails that wait to be sent. */
  readonly waitingMails: () => Promise<number>
  /** Age of the oldest of them, s; 0 without one. */
  readonly oldestMailSeconds: () => Promise<number>
  /** People whose Account waits to be created, suspended or given a new address. */
  readonly pendingAccounts: () => Promise<number>
  /** Passwords that wait for their turn to be checked. */
  readonly waitingHashes: () => number
  /** Rejects while the database does not answer. */
  readonly ping: () => Promise<void>
  readonly isClusterAway: () => boolean
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
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const mails = counter(
    'headgate_dashboard_mails_total',
    'Tries to send a mail by outcome: sent, failed (tried again), given-up.',
    'outcome',
  )
  const signUps = counter('headgate_dashboard_sign_ups_total', 'Sign-ups by step: posted, verified.', 'step')
  const signIns = counter('headgate_dashboard_sign_ins_total', 'Sign-ins by way and outcome.', 'by', 'outcome')
  const databaseErrors = counter('headgate_dashboard_database_errors_total', 'Requests that failed because the database did not answer.')
  const kubeCalls = counter('rest_client_requests_total', 'Calls of the Kubernetes API.', 'code', 'method', 'host')
  return {
    registry,
    answered: (method: string, route: string, status: number, seconds: number): void =>
      answers.observe({ method: METHODS.has(method) ? method : 'other', route, status: String(status) }, seconds),
    mail: (outcome: string): void => mails.inc({ outcome }),
    signUp: (step: 'posted' | 'verified'): void => signUps.inc({ step }),
    /** @param by `password`, `code`, `backup code` or the id of a provider of the settings */
    signIn: (by: string, outcome: 'signed-in' | 'wrong'): void => signIns.inc({ by, outcome }),
    databaseFailed: (): void => databaseErrors.inc(),
    kubeAnswered: (method: string, code: string, host: string): void => kubeCalls.inc({ code, method, host }),
    watch: (gauges: Gauges): void => registerGauges(registry, gauges),
  }
}

function registerGauges(registry: Registry, gauges: Gauges): void {
  const gauge = (name: string, help: string, read: () => number | Promise<number>): void =>
    void new Gauge({
      name: `headgate_dashboard_${name}`,
      help,
      registers: [registry],
      async collect() {
        this.set(await valueOf(read))
      },
    })
  gauge('outbox_mails', 'Mails that wait to be sent.', gauges.waitingMails)
  gauge('outbox_oldest_seconds', 'Age of the oldest mail that waits to be sent.', gauges.oldestMailSeconds)
  gauge('pending_accounts', 'People whose Account waits to be created or changed in the cluster.', gauges.pendingAccounts)
  gauge('waiting_passwords', 'Passwords that wait for their turn to be checked.', gauges.waitingHashes)
  gauge('cluster_away', '1 while the API server does not answer.', () => Number(gauges.isClusterAway()))
  gauge('database_up', '1 while the database answers.', () =>
    gauges.ping().then(
      () => 1,
      () => 0,
    ),
  )
}

/** A database that does not answer must not hide all other metrics. */
async function valueOf(read: () => number | Promise<number>): Promise<number> {
  try {
    return await read()
  } catch {
    return Number.NaN
  }
}
