/**
 * One process from the same parts that a cluster runs: the operator over the ObjectStore, the gateway over its follower. Only this file
 * passes in the differences.
 */
import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { BodyReader } from '../gateway/dialects/body-reader.ts'
import { safeText } from '../gateway/errors.ts'
import { Gateway } from '../gateway/gateway.ts'
import { type Exchange, NO_ROUTE } from '../gateway/http/exchange.ts'
import { createGatewayServer } from '../gateway/http/server.ts'
import { largestText, settingsWith } from '../gateway/config.ts'
import { bodyLimits } from '../gateway/http/body-budget.ts'
import { callsWithin } from '../gateway/http/load-guard.ts'
import { availableMemory } from '#platform/available-memory.ts'
import { openFileLimit } from '#platform/open-files.ts'
import { systemClock } from '#platform/clock.ts'
import { parseMicros } from '#contract/values/micros.ts'
import { shardSecretName } from '#contract/records/mounted-folder.ts'
import { Misconfigured, type Running } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { Operator } from '../operator/app.ts'
import { readInstallation } from '../operator/shards/installation.ts'
import { LOOPBACK_ACCESS } from '../operator/usage/usage-access.ts'
import { LedgerReader } from '../operator/usage/ledger-reader.ts'
import { UsageReader } from '../operator/usage/usage-reader.ts'
import { readCurrency } from '../operator/shards/installation.ts'
import { createUsageServer } from '../operator/usage/usage-server.ts'
import { KubeEventRecorder } from '#kube/events.ts'
import { API_KINDS } from '#api/kinds.ts'
import { accounts, apiKeys, plans } from '#api/resources.ts'
import { type KubeObject, type ObjectRef, refKey, refOf } from '#kube/port.ts'
import { endpointSlices, namespaces, services } from '#kube/resources.ts'
import { dashboardLines, stoppedLine, STOPPING } from './banner.ts'
import type { StandaloneConfig } from './config.ts'
import { listenOn } from './listen-address.ts'
import { MemoryUsage } from './memory-usage.ts'
import { ManifestFolder } from './manifest-folder.ts'
import { openModelServer, withModelServer, type ModelServer } from './model-server.ts'
import { ObjectStore } from './object-store.ts'
import { closeEnds, openProjection, type ProjectionEnds } from './projection-ends.ts'
import { resumedLine, SpendLedger } from './spend-ledger.ts'
import { type RunRecord, STATE_FOLDER, StateFolder } from './state-folder.ts'
import { StatusConsole } from './status-console.ts'
import { inTurns, makeTurns, type Turns } from './turns.ts'

export interface StandaloneDeps {
  readonly config: StandaloneConfig
  readonly version: string
  readonly log: Log
  readonly print: (text: string) => void
  /** A person reads the output, so the program prints more than the log. */
  readonly isText: boolean
}

const OPERATOR_NAMESPACE = 'headgate'
const POD_NAME = 'standalone'
/** One folder holds all backend credentials. */
const MOUNTED_SHARDS = 1
/** The Secret of the backend credentials, which the gateway reads from its folder. */
const CREDENTIALS = { namespace: OPERATOR_NAMESPACE, name: shardSecretName('upstream', MOUNTED_SHARDS, 0) }
/** Namespace of the keys that people make in the dashboard. */
const KEYS_NAMESPACE = 'headgate-accounts'
/** How long the ApiKey of a revoked key of theirs stays, ms. */
const RETIRED_AFTER_MS = 90 * 86_400_000
/** Large, because the machine has no other tenants. */
const MAX_OBJECTS = 100_000
const OPERATOR_SETTINGS = {
  billingCurrency: 'USD',
  billingLowBalance: parseMicros('1.00'),
  namespace: OPERATOR_NAMESPACE,
  gatewayService: 'headgate-gateway',
  keyringShards: 32,
  mountedShards: MOUNTED_SHARDS,
  revocationWaitMs: 30_000,
  retirement: { namespace: KEYS_NAMESPACE, afterMs: RETIRED_AFTER_MS },
  watchNamespaces: [],
  formerNamespaces: [],
  maxApiKeysPerNamespace: MAX_OBJECTS,
  maxModelBytesPerNamespace: Infinity,
  maxServedModelsPerNamespace: MAX_OBJECTS,
  publishingNamespaces: ['*'],
  clusterAddressNamespaces: ['*'],
  accountRequiredNamespaces: [],
  unprovenHashNamespaces: ['*'],
  hasAccounts: true,
  allowLoopback: true,
}
/** Time for running answers after Ctrl-C; short, because a person waits for the prompt. */
const DRAIN_MS = 3_000
const POLL_MS = 5
const MAX_PATH_CHARACTERS = 256
const PROCESS_BYTES = 9

/**
 * Starts everything and prints how to use it.
 * @throws Misconfigured for an error that only a person can fix; every part is then stopped
 */
export async function startStandalone(deps: StandaloneDeps): Promise<Running> {
  await using parts = new AsyncDisposableStack() // ended in reverse, also when a later step fails
  const { promise: failed, reject: fail } = Promise.withResolvers<never>()
  failed.catch(() => undefined) // the program handles it; during the start the failing step reports itself
  const world = await openWorld(deps, parts, fail)
  const gateway = createGateway(world)
  const server = parts.adopt(createGatewayServer(gateway.app, gateway.errors), closeServer)
  const baseURL = await listenOn(server, deps.config.host, deps.config.port, deps.log)
  const usageURL = await serveUsage(world)
  const folder = parts.adopt(followManifests(world), (one) => one.stop())
  await folder.start()
  const operator = composeOperator(world, baseURL)
  parts.adopt(gateway, (one) => one.drain(DRAIN_MS).then(() => one.stop()))
  const status = parts.adopt(createConsole(world, operator, { baseURL, usageURL }), (one) => one.stop())
  await Promise.all([operator.start(), untilBuilt(world.ends).then(() => gateway.start())]) // an earlier gateway would only log errors
  while (!gateway.health.isReady()) await Promise.race([sleep(POLL_MS), failed])
  announce(world, baseURL, usageURL)
  status.start()
  await openDashboard(world, baseURL, usageURL)
  const running = parts.move()
  return { stop: () => stop(deps, running), failed }
}

/** After the keys work, so that they are ready as soon as without the dashboard. */
async function openDashboard({ config, store, log, print, parts }: World, apiURL: string, usageURL: string): Promise<void> {
  if (!config.dashboard) return
  const { DEFAULT_PLAN, startLocalDashboard } = await import('./dashboard.ts')
  const deps = {
    store,
    stateFolder: STATE_FOLDER,
    host: config.host,
    port: config.dashboardPort,
    apiURL,
    usageURL,
    keysNamespace: KEYS_NAMESPACE,
    currency: OPERATOR_SETTINGS.billingCurrency,
    lowBalance: OPERATOR_SETTINGS.billingLowBalance,
    payments: config.payments,
    log,
  }
  const dashboard = parts.adopt(await startLocalDashboard(deps), (one) => one.stop())
  const missingPlan = store.informer(plans).get({ namespace: '', name: DEFAULT_PLAN }) === undefined ? DEFAULT_PLAN : undefined
  print(dashboardLines({ url: dashboard.url, missingPlan, payments: config.payments }))
}

async function stop({ isText, print, config, log }: StandaloneDeps, running: AsyncDisposableStack): Promise<void> {
  const say = isText ? print : (line: string) => log.info(line.trimEnd())
  say(isText ? STOPPING : 'stopping')
  await running.disposeAsync()
  say(stoppedLine(config, STATE_FOLDER))
}

/** What operator and gateway share. */
interface World extends StandaloneDeps {
  /** Ended at the end, in reverse. */
  readonly parts: AsyncDisposableStack
  /** Ends the program. */
  readonly fail: (reason: Error) => void
  readonly state: StateFolder
  readonly store: ObjectStore
  readonly ends: ProjectionEnds
  readonly models: ModelServer
  readonly ledger: SpendLedger
  /** Random per start: the name of this process in the projection and in the ledger. */
  readonly process: string
  readonly usage: MemoryUsage
  /** The line about the spend of the last run. */
  readonly note: string
  /** Of the event loop: work on thousands of manifests and keys leaves turns to calls. */
  readonly turns: Turns
}

async function openWorld(deps: StandaloneDeps, parts: AsyncDisposableStack, fail: World['fail']): Promise<World> {
  const { config, log } = deps
  const isInternal = ({ namespace, name }: ObjectRef): boolean => namespace === OPERATOR_NAMESPACE && name !== CREDENTIALS.name
  const state = parts.adopt(new StateFolder(STATE_FOLDER, API_KINDS, isInternal), (folder) => folder.close())
  const resumed = state.fact('spend')
  const process = randomBytes(PROCESS_BYTES).toString('base64url')
  const ledger = new SpendLedger({
    clock: systemClock,
    process,
    resumed,
    save: (spend) => state.setFact('spend', spend),
    onUnsaved: (error) => log.error(`${STATE_FOLDER}: ${String(error)}; a crash now loses the spend of budgets since the last write`),
  })
  const models = parts.adopt(await openModelServer(config.modelURL), (one) => one.close())
  const store = new ObjectStore({ persist: (change) => state.persist(change) })
  store.restore(state.load().map(({ resource, object }) => ({ resource, object: withModelServer(object, models.url) })))
  const installation = async (): Promise<string> => (await readInstallation({ kube: store, namespace: OPERATOR_NAMESPACE })).id
  const ends = parts.adopt(await openProjection(config, installation), closeEnds)
  return {
    ...deps,
    parts,
    fail,
    state,
    store,
    ends,
    models,
    ledger,
    process,
    usage: new MemoryUsage(() => systemClock.now(), resumed?.isFinal !== false),
    note: resumedLine(
      resumed,
      [...store.informer(accounts).list()].some(({ spec }) => spec.billing === 'Prepaid'),
    ),
    turns: makeTurns(),
  }
}

function createGateway({ config, log, version, ends, state, ledger, process, usage, store, fail }: World): Gateway {
  const settings = settingsWith({
    podName: POD_NAME,
    keyringDir: state.secretFolder(CREDENTIALS), // there is no cold start
    coldStart: 'RequireRedis',
    accessLog: config.accessLog,
  })
  const gateway = new Gateway({
    settings,
    source: ends.source,
    clock: systemClock,
    log,
    version,
    bodyLimits: bodyLimits(availableMemory()),
    maxCalls: callsWithin(openFileLimit()),
    bodyReader: new BodyReader({ log, clock: systemClock, maxBodyBytes: largestText(settings) }),
    process,
    ledger,
    usage,
    allowLoopback: true,
    healthOnApi: true,
    accessFields: accessFields(store),
  })
  gateway.follower.failed.catch(fail)
  return gateway
}

/** The name of the ApiKey beside the id of its key, and the path that no route has. In a cluster, gateways know no names. */
function accessFields(store: ObjectStore): (exchange: Exchange) => Readonly<Record<string, unknown>> {
  const keys = store.informer(apiKeys)
  keys.addIndex('keyID', ({ status }) => (status?.keyID === undefined ? [] : [status.keyID]))
  return ({ keyID, route, request: { url = '' } }) => {
    const [key] = keyID === undefined ? [] : [...keys.byIndex('keyID', keyID)]
    return {
      ...(key ? { apiKey: refKey(refOf(key)) } : {}),
      ...(route === NO_ROUTE ? { path: safeText(url.replace(/[?#].*$/s, ''), MAX_PATH_CHARACTERS) } : {}),
    }
  }
}

function createConsole(
  { config, note, state, store, log, print }: World,
  operator: Operator,
  { baseURL, usageURL }: { readonly baseURL: string; readonly usageURL: string },
): StatusConsole {
  return new StatusConsole({
    store,
    clock: systemClock,
    log,
    print,
    baseURL,
    manifests: config.manifests,
    note: () => note + usageNote(store, usageURL),
    secretFile: (secret) => state.entryPath(secret, 'SERVICE_API_KEY'),
    isBusy: () => !operator.isIdle,
  })
}

/** How to read the usage of an account; '' without accounts. */
function usageNote(store: ObjectStore, usageURL: string): string {
  const [first] = Array.from(store.informer(accounts).list(), ({ metadata }) => metadata.name).toSorted()
  return first === undefined ? '' : `Usage of an account: curl ${usageURL}/usage/v1/accounts/${first}\n\n`
}

function followManifests({ config, log, store, models, turns }: World): ManifestFolder {
  const adapt = (object: KubeObject): KubeObject => withModelServer(object, models.url)
  return new ManifestFolder({ path: config.manifests, store, clock: systemClock, log, adapt, prunesAll: config.pruneAll, turns })
}

function composeOperator({ config, log, parts, fail, store, ends, ledger, usage, turns }: World, baseURL: string): Operator {
  const events = new KubeEventRecorder({ kube: store, clock: systemClock, logger: log, instance: POD_NAME })
  parts.adopt(events, (one) => one.flush())
  let fence = 1 // no other operator uses the folder; a Redis may have seen higher ones
  const operator = new Operator({
    kube: inTurns(store, turns),
    informers: {
      of: (resource) => store.informer(resource),
      services: store.informer(services),
      endpointSlices: store.informer(endpointSlices),
      namespaces: store.informer(namespaces),
    },
    store: ends.store,
    leader: {
      fence: () => fence,
      raiseFence: async (stored) => void (fence = stored + 1),
      assertLeading: () => undefined,
      onFenced: () => fail(new Misconfigured('REDIS_URL: another operator writes to this Redis; stop it or use another Redis')),
    },
    onForeignStore: (why) => fail(new Misconfigured(`REDIS_URL: ${why}`)),
    events,
    clock: systemClock,
    random: Math.random,
    log,
    balanceStore: ledger.balances,
    isBalanceStoreNew: true,
    usageStore: usage,
    usage: (subjects, listener) => ledger.report(subjects, listener),
    settings: { ...OPERATOR_SETTINGS, publicURL: baseURL, redisTakeOver: config.redisTakeOver },
  })
  return parts.adopt(operator, (one) => one.stop())
}

async function untilBuilt({ source }: ProjectionEnds): Promise<void> {
  while ((await source.meta()) === undefined) await sleep(POLL_MS)
}

/** Serves the usage of accounts on a free port of loopback, without tokens. */
async function serveUsage({ store, log, parts }: World): Promise<string> {
  const secrets = { kube: store, namespace: OPERATOR_NAMESPACE }
  const usage = new UsageReader(secrets)
  const ledger = new LedgerReader({ ...secrets, usage })
  const server = createUsageServer({
    access: LOOPBACK_ACCESS,
    read: (account) => usage.read(account),
    readLedger: (account) => ledger.read(account),
    currency: () => readCurrency({ ...secrets, currency: OPERATOR_SETTINGS.billingCurrency }),
    clock: systemClock,
    outage: new OutageLog('usage', log, systemClock),
  })
  parts.adopt(server, closeServer)
  return await listenOn(server, '127.0.0.1', 0, log)
}

/** Records the run, now and at its end. */
function announce({ config, log, version, parts, state }: World, baseURL: string, usageURL: string): void {
  const run: RunRecord = { pid: process.pid, baseURL, usageURL, manifests: config.manifests, startedMs: Date.now() }
  state.setFact('run', run)
  parts.defer(() => state.setFact('run', { ...run, endedMs: Date.now() }))
  log.info({ baseURL, version }, 'listening')
}

function closeServer(server: Server): void {
  server.close()
  server.closeAllConnections()
}
