/** The front of the gateway on a loopback port, with real authentication, scope and model table, and a fake in place of the backends. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { createApp, type AppDeps } from '../../gateway/app.ts'
import { AccountLinks } from '../../gateway/auth/account-links.ts'
import { KeyTable } from '../../gateway/auth/key-table.ts'
import type { AccountRecord } from '#contract/records/account-record.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import { authenticate } from '../../gateway/auth/authenticate.ts'
import { type Exchange, commonHeaders } from '../../gateway/http/exchange.ts'
import { ActiveExchanges } from '../../gateway/http/active-exchanges.ts'
import { BodyBudget, bodyLimits } from '../../gateway/http/body-budget.ts'
import { ErrorSender } from '../../gateway/http/send-error.ts'
import { createGatewayServer, type SERVER_SETTINGS } from '../../gateway/http/server.ts'
import { systemClock } from '#platform/clock.ts'
import { CallLimits } from '../../gateway/limits/call-limits.ts'
import { FreeCalls } from '../../gateway/limits/free-calls.ts'
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import { UsageMeter } from '../../gateway/usage/usage-meter.ts'
import { RequestTurns } from '../../gateway/http/request-turns.ts'
import { LoopShare } from '#platform/loop-share.ts'
import { mintCredential } from '#contract/values/credential.ts'
import { encodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import { encodeModelRecord, type ModelRecord } from '#contract/records/model-record.ts'
import type { Route } from '../../gateway/routes/route-table.ts'
import type { ForwardJob, Outcome } from '../../gateway/upstream/forward-job.ts'
import { ModelTable } from '../../gateway/upstream/model-table.ts'
import { listening } from './listening.ts'
import { backendRecord, issuedKey, modelRecord as shopModel } from './records.ts'
import { sharedBodyReader } from './shared-body-reader.ts'

const MAX_BODY_BYTES = 32 * 2 ** 20

export interface FrontOptions {
  readonly models?: readonly ModelRecord[]
  readonly maxBodyBytes?: number
  readonly apiKeyHeader?: boolean
  readonly server?: Partial<typeof SERVER_SETTINGS>
  readonly errors?: ErrorSender
  readonly app?: Partial<AppDeps>
  readonly routes?: readonly Route[]
  readonly forward?: (job: ForwardJob) => Promise<Outcome>
}

/** Keys, models and a record of what came in. */
export class FrontGateway {
  base = ''
  port = 0
  /** Jobs that reached the place of the backends. */
  readonly jobs: ForwardJob[] = []
  /** Exchanges that are over. */
  readonly finished: Exchange[] = []
  /** Requests in service: their headers have arrived. */
  started = 0
  /** Requests that Node has parsed from its connections. */
  requests = 0
  readonly models = new ModelTable({ allowLoopback: true })
  readonly accounts = new Map<string, AccountRecord>()
  readonly plans = new Map<string, PlanRecord>()
  /** What the calls of keys with an account have used. */
  readonly usage = new UsageMeter('front', systemClock)
  readonly keys = new KeyTable()
  #server: Server | undefined

  /** Issues a key in namespace `shop`. @returns its Credential */
  issue(change: Partial<KeyRecord> = {}): string {
    const { credential, record } = issuedKey(mintCredential().id, { revision: 1, name: 'bot', ...change })
    this.keys.put(record.uid, encodeKeyRecord(record))
    return credential
  }

  async listen(server: Server): Promise<this> {
    this.#server = server.on('request', () => void this.requests++)
    this.port = await listening(server)
    this.base = `http://127.0.0.1:${this.port}`
    return this
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections()
    this.#server?.close()
    if (this.#server) await once(this.#server, 'close')
  }
}

export async function startFront(options: FrontOptions = {}): Promise<FrontGateway> {
  await sharedBodyReader.start()
  const front = new FrontGateway()
  const { models } = front
  for (const record of options.models ?? [modelRecord('llama')]) models.put(record.uid, encodeModelRecord(record))
  const errors = options.errors ?? new ErrorSender()
  const auth = {
    keys: front.keys,
    accounts: new AccountLinks(front.accounts, front.plans),
    projection: { loaded: true, unreadForMs: 0, lacksKeys: false },
    now: () => Date.UTC(2026, 10, 21),
    apiKeyHeader: options.apiKeyHeader ?? true,
  }
  const ledger = new LeaseLedger({ store: new MemoryLedgerStore(() => Date.now()), clock: systemClock, process: 'front', live: () => 1 })
  const app = createApp(
    {
      errors,
      active: new ActiveExchanges(),
      isOverloaded: () => false,
      bodies: new BodyBudget(bodyLimits(2 ** 30)),
      loop: new LoopShare(systemClock),
      turns: new RequestTurns(),
      bodyReader: sharedBodyReader,
      limits: new CallLimits({ ledger, clock: systemClock, tokenHold: 'Declared', usage: front.usage }),
      freeCalls: new FreeCalls(120, systemClock),
      ledger,
      usage: front.usage,
      admitted: () => undefined,
      reasonToEnd: () => undefined,
      isLeaving: () => false,
      authenticate: (request) => authenticate(request, auth),
      models,
      forward: (job) => {
        front.jobs.push(job)
        return (options.forward ?? answerOk)(job)
      },
      maxBodyBytes: options.maxBodyBytes ?? MAX_BODY_BYTES,
      isServing: () => {
        front.started += 1 // called once per request
        return true
      },
      metrics: { finished: (exchange) => front.finished.push(exchange) },
      accessLog: () => undefined,
      ...options.app,
    },
    options.routes,
  )
  return front.listen(createGatewayServer(app, errors, options.server))
}

/** A model of namespace `shop` with one backend on a port without a listener. */
export function modelRecord(servedName: string, change: Partial<ModelRecord> = {}): ModelRecord {
  const backends = [backendRecord({ endpoints: ['127.0.0.1:9'], upstreamModel: servedName })] // the discard port
  return shopModel(servedName, { revision: 1, uid: `uid-${servedName}`, createdMs: Date.UTC(2026, 0, 2), backends, ...change })
}

async function answerOk({ exchange, askedName }: ForwardJob): Promise<Outcome> {
  const { response, requestId } = exchange
  response.writeHead(200, commonHeaders(requestId).concat('content-type', 'application/json'))
  response.end(JSON.stringify({ model: askedName }))
  return { usage: undefined, wasSent: true, error: undefined }
}
