/** Series, in the notation of promtool's rule tests, on which each alert must fire, and on which it must stay silent. One value a minute. */

/** Series of one situation: selector → values. `1x30` is 31 times 1, `0+10x30` counts up by 10, `_x5 1x25` begins late. */
export type Situation = Readonly<Record<string, string>>

export interface AlertCase {
  readonly fires: readonly Situation[]
  readonly silent: readonly Situation[]
  /** Minutes after which the alerts are read; default: 10. */
  readonly after?: number
}

const AT = 'namespace="headgate",pod="a"'
const STANDBY = 'namespace="headgate",pod="b"'
const LEADER = 'leader_election_master_status'
const OPERATOR = 'name="headgate-operator"'

/** A gauge that fires at one value and not at another. */
function gauge(name: string, firing: string, silent: string, labels = ''): AlertCase {
  const series = `${name}{${AT}${labels && `,${labels}`}}`
  return { fires: [{ [series]: firing }], silent: [{ [series]: silent }, {}] }
}

/** A counter that fires for some minutes after it has grown. */
function growth(name: string, labels = ''): AlertCase {
  const series = `${name}{${AT}${labels && `,${labels}`}}`
  return { fires: [{ [series]: '0x10 3x20' }], silent: [{ [series]: '3x30' }, {}], after: 15 }
}

export const ALERT_CASES: Readonly<Record<string, AlertCase>> = {
  HeadgateGatewayAbsent: {
    fires: [{}, { 'headgate_keys{namespace="other",pod="a"}': '5x30' }],
    silent: [{ [`headgate_keys{${AT}}`]: '5x30' }],
  },
  HeadgateChangesUnread: gauge('headgate_projection_unread_seconds', '40x30', '3x30'),
  HeadgateStartedWithoutRedis: gauge('headgate_table_source', '1x30', '0x30', 'source="Keyring"'),
  HeadgateUnreadableRecords: { ...gauge('headgate_unreadable_records', '2x30', '2x8 0x21'), after: 20 },
  HeadgateModelFailing: {
    fires: [requests('0+20x30', '0+80x30'), requests('0+20x30', '0+80x30', 'broken')],
    silent: [requests('0+5x30', '0+95x30'), {}],
  },
  HeadgateOverloaded: {
    fires: ['overloaded', 'bodiesFull'].map((error) => ({ [`headgate_errors_total{${AT},row="25",error="${error}"}`]: '0+1x30' })),
    silent: [{ [`headgate_errors_total{${AT},row="3",error="unknownKey"}`]: '0+100x30' }, {}],
  },
  HeadgateInternalErrors: {
    fires: [internalErrors('_x5 1x25'), internalErrors('4x5 5x25')], // the first one of a pod, too
    silent: [internalErrors('5x30'), {}],
  },
  HeadgateLimitsUnavailable: {
    fires: [decisions('unavailable', 'store')],
    silent: [decisions('refused', 'requestsPerMinute'), {}],
  },
  HeadgateLimitStoreDown: gauge('headgate_limit_store_breaker', '1x30', '0x30', 'state="open"'),
  HeadgateRedisEvicts: gauge('headgate_redis_evicts', '1x30', '0x30'),
  HeadgateNoLeader: {
    fires: [{}, { [`${LEADER}{${AT},${OPERATOR}}`]: '0x30', [`${LEADER}{${STANDBY},${OPERATOR}}`]: '0x30' }],
    silent: [{ [`${LEADER}{${AT},${OPERATOR}}`]: '0x30', [`${LEADER}{${STANDBY},${OPERATOR}}`]: '1x30' }],
  },
  HeadgateOperatorBlocked: gauge('headgate_operator_start_blocked', '1x30', '1x0 _x30', 'reason="the keyring is being read"'),
  HeadgateForeignRedis: gauge('headgate_operator_installation_foreign', '1x30', '0x30'),
  HeadgateRevocationSlow: {
    fires: [revocations({ 1: 0, 2: 0, 5: 10 })],
    silent: [revocations({ 0.1: 10, 2: 10, 5: 10 }), {}],
  },
  HeadgatePodsBehind: {
    fires: [revisions({ written: '9x30', acknowledged: '7x30', leads: '1x30' })],
    silent: [
      revisions({ written: '9+1x30', acknowledged: '7+1x30', leads: '1x30' }), // the gateways are always a little behind, under load
      revisions({ written: '9x30', acknowledged: '9x30', leads: '1x30' }),
      revisions({ written: '9x30', acknowledged: '7x30', leads: '0x30' }), // a process that no longer leads
      {},
    ],
  },
  HeadgateReconcileErrors: {
    ...gauge('controller_runtime_reconcile_errors_total', '0+20x40', '0+1x40', 'controller="ApiKey"'),
    after: 30,
  },
  HeadgateReconcileBugs: growth('controller_runtime_reconcile_panics_total', 'controller="ServedModel"'),
  HeadgateWatchSilent: gauge('headgate_operator_informer_last_event_seconds', '400x30', '70x30', 'resource="apikeys.headgate.dev"'),
  HeadgateKeyringFilling: { ...gauge('headgate_operator_keyring_bytes', '200000x30', '100000x30', 'shard="0"'), after: 20 },
  HeadgateUnreadableEntries: gauge('headgate_operator_unreadable_entries', '1x30', '0x30', 'set="keyring"'),
  HeadgateSpendNotDurable: gauge('headgate_operator_spend_checkpoint_age_seconds', '40x30', '5x30'),
  HeadgateSpendRestored: growth('headgate_operator_ledger_restores_total'),
  HeadgateDashboardAbsent: {
    fires: [{}, { 'headgate_dashboard_database_up{namespace="other",pod="a"}': '1x30' }],
    silent: [{ [`headgate_dashboard_database_up{${AT}}`]: '0x30' }],
  },
  HeadgateDashboardDatabaseAway: gauge('headgate_dashboard_database_up', '0x30', '1x30'),
  HeadgateDashboardMailsStuck: { ...gauge('headgate_dashboard_outbox_oldest_seconds', '0+60x40', '0+60x5 0x40'), after: 30 },
  HeadgateDashboardAccountsStuck: { ...gauge('headgate_dashboard_pending_accounts', '1x40', '1x5 0 2x5 0x30'), after: 30 },
  HeadgatePaymentsAbsent: {
    fires: [{}, { 'headgate_payments_last_sweep_timestamp_seconds{namespace="other",pod="a"}': '1x30' }],
    silent: [{ [`headgate_payments_last_sweep_timestamp_seconds{${AT}}`]: '0x30' }],
  },
  HeadgatePaymentWrong: {
    fires: [paymentAlarms('0x60 1x30'), paymentAlarms('_x60 1x30'), paymentAlarms('4x60 5x30')], // the first one of a pod, too
    silent: [paymentAlarms('0x90'), paymentAlarms('5x90'), paymentAlarms('0 1x90'), {}],
    after: 75,
  },
  HeadgatePaymentsUnsettled: {
    fires: [sweeps('0x60'), sweeps('0 600 600x60')], // never, and not since ten minutes after the start
    silent: [sweeps('0+60x60'), sweeps('0x29 1800x10 2400x20'), {}],
    after: 50,
  },
}

function requests(failed: string, answered: string, status = '5xx'): Situation {
  const series = (of: string): string =>
    `headgate_requests_total{${AT},route="/v1/messages",model_namespace="shop",model="llama",backend="one",status="${of}"}`
  return { [series(status)]: failed, [series('2xx')]: answered }
}

function internalErrors(values: string): Situation {
  return { [`headgate_errors_total{${AT},row="34",error="internalError"}`]: values }
}

function paymentAlarms(values: string): Situation {
  return { [`headgate_payments_alarms_total{${AT}}`]: values }
}

/** @param values when all payments were settled, s after the start of the situation */
function sweeps(values: string): Situation {
  return { [`headgate_payments_last_sweep_timestamp_seconds{${AT}}`]: values }
}

function decisions(outcome: string, limit: string): Situation {
  return { [`headgate_limit_decisions_total{${AT},outcome="${outcome}",limit="${limit}"}`]: '0+1x30' }
}

/** @param perMinute revocations a minute up to each bound, seconds */
function revocations(perMinute: Readonly<Record<number, number>>): Situation {
  const bucket = (le: string): string => `headgate_operator_revocation_seconds_bucket{${AT},le="${le}"}`
  const bounds = Object.entries(perMinute).map(([le, count]) => [bucket(le), `0+${count}x30`])
  return { ...Object.fromEntries(bounds), [bucket('+Inf')]: '0+10x30' }
}

function revisions({ written, acknowledged, leads }: Readonly<Record<'written' | 'acknowledged' | 'leads', string>>): Situation {
  return {
    [`headgate_operator_projection_revision{${AT}}`]: written,
    [`headgate_operator_projection_watermark{${AT}}`]: acknowledged,
    [`${LEADER}{${AT},${OPERATOR}}`]: leads,
  }
}
