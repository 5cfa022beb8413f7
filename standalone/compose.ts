/**
 * One process out of the same parts that a cluster runs: the operator over the ObjectStore, the gateway over its follower. What differs
 * is passed in here and nowhere else.
 */
import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { BodyReader } from '../gateway/dialects/body-reader.ts'
import { Gateway } from '../gateway/gateway.ts'
import { createGatewayServer } from '../gateway/http/server.ts'
import { forwardedHeaders } from '../gateway/upstream/upstream-headers.ts'
import { bodyLimits } from '../gateway/http/body-budget.ts'
import { availableMemory } from '../gateway/process/available-memory.ts'
import { systemClock } from '../gateway/process/clock.ts'
import { shardSecretName } from '../gateway/shared/mounted-folder.ts'
import { listenError, Misconfigured, type Running } from '../gateway/process/lifecycle.ts'
import type { Log } from '../gateway/process/log.ts'
import { createOperator, type Operator } from '../operator/app.ts'
import { KubeEventRecorder } from '../operator/kube/events.ts'
import { apiKeys, servedModels } from '../operator/api/resources.ts'
import { endpointSlices, namespaces, services } from '../operator/kube/resources.ts'
import { curlLine, isReady, limitsLine, modelNames, startBanner } from './banner.ts'
import type { StandaloneConfig } from './config.ts'
import { DurableLedger, SAVE_EVERY_MS } from './durable-ledger.ts'
import { ManifestFolder } from './manifest-folder.ts'
import { openModelServer, withModelServer, type ModelServer } from './model-server.ts'
import { ObjectStore } from './object-store.ts'
import { openProjection, type ProjectionEnds } from './projection-ends.ts'
import { resumedLine } from './spend-file.ts'
import { StateFolder } from './state-folder.ts'

/** What the program gives it. */
export interface StandaloneDeps {
  readonly config: StandaloneConfig
  /** Folder of the state, relative to where the program runs: its path is printed. */
  readonly stateFolder: string
  readonly version: string
  readonly log: Log
  readonly print: (text: string) => void
}

const HOST = '127.0.0.1'
const OPERATOR_NAMESPACE = 'headgate'
const POD_NAME = 'standalone'
const MAX_BODY_BYTES = 33_554_432
const KEYRING_SHARDS = 32
/** One folder holds all backend credentials. */
const MOUNTED_SHARDS = 1
/** One person's machine: nobody shares it with other tenants. */
const MAX_OBJECTS = 100_000
const REVOCATION_WAIT_MS = 30_000
/** Answers under way get so long after Ctrl-C; somebody waits for the prompt. */
const DRAIN_MS = 3_000
const LOOK_EVERY_MS = 5
const PROCESS_BYTES = 9

/**
 * Starts everything and prints how to use it.
 * @throws Misconfigured for what only a person can remedy; nothing is left running then
 */
export async function startStandalone(deps: StandaloneDeps): Promise<Running> {
  await using parts = new AsyncDisposableStack() // ended in reverse, also when a later step fails
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => undefined) // seen by the program; during the start the step that fails is the one that tells
  const world = await openWorld(deps, parts)
  const gateway = createGateway(deps, world)
  const server = parts.adopt(await listen(createGatewayServer(gateway.app, gateway.errors), deps.config.port), closeServer)
  const baseURL = `http://${HOST}:${portOf(server)}`
  const folder = parts.adopt(followManifests(deps, world), (one) => one.stop())
  await folder.start()
  const operator = parts.adopt(composeOperator({ deps, world, baseURL, fail: failed.reject }), (one) => one.stop())
  parts.adopt(gateway, endGateway)
  gateway.follower.failed.catch(failed.reject)
  await Promise.all([operator.start(), untilBuilt(world.ends).then(() => gateway.start())]) // a gateway that asks earlier would only complain
  while (!gateway.health.isReady()) await Promise.race([sleep(LOOK_EVERY_MS), failed.promise])
  announce(deps, world, baseURL)
  const running = parts.move()
  return { stop: () => running.disposeAsync(), failed: failed.promise }
}

/** What operator and gateway stand on. */
interface World {
  readonly state: StateFolder
  readonly store: ObjectStore
  readonly ends: ProjectionEnds
  readonly models: ModelServer
  readonly ledger: DurableLedger
}

async function openWorld({ config, stateFolder, log }: StandaloneDeps, parts: AsyncDisposableStack): Promise<World> {
  const state = parts.adopt(new StateFolder(stateFolder), (folder) => folder.close())
  const file = state.textFile('spend.json')
  const onUnwritten = ({ message }: Error): void => log.error(`${file.path}: ${message}; a crash now loses what budgets spend meanwhile`)
  const ledger = DurableLedger.open({ clock: systemClock, process: POD_NAME, file, onUnwritten })
  const ends = parts.adopt(await openProjection(config.redisURL), closeProjection)
  const models = parts.adopt(await openModelServer(config.modelURL), (one) => one.close())
  const store = new ObjectStore({ persist: (change) => state.persist(change) })
  store.restore(state.load())
  return { state, store, ends, models, ledger }
}

function createGateway({ config, log, version }: StandaloneDeps, { ends, state, ledger }: World): Gateway {
  const settings = {
    podName: POD_NAME,
    keyringDir: state.secretFolder({ namespace: OPERATOR_NAMESPACE, name: shardSecretName('upstream', MOUNTED_SHARDS, 0) }), // for the backend credentials; there is no cold start
    coldStart: 'RequireRedis' as const,
    accessLog: config.accessLog,
    maxBodyBytes: MAX_BODY_BYTES,
    apiKeyHeader: true,
    forwardedHeaders: forwardedHeaders(),
    tokenHold: 'Declared' as const,
    budgetStatus: 402 as const,
  }
  const alone = { allowLoopback: true, healthOnApi: true }
  return new Gateway({
    settings,
    source: ends.source,
    clock: systemClock,
    log,
    version,
    bodyLimits: bodyLimits(availableMemory()),
    bodyReader: new BodyReader({ log, clock: systemClock, maxBodyBytes: MAX_BODY_BYTES }),
    process: randomBytes(PROCESS_BYTES).toString('base64url'),
    ledger,
    ...alone,
  })
}

function followManifests({ config, log }: StandaloneDeps, { store, models }: World): ManifestFolder {
  return new ManifestFolder({
    path: config.manifests,
    store,
    clock: systemClock,
    log,
    adapt: (object) => withModelServer(object, models.url),
  })
}

interface OperatorParts {
  readonly deps: StandaloneDeps
  readonly world: World
  readonly baseURL: string
  readonly fail: (reason: Error) => void
}

function composeOperator({ deps: { log }, world: { store, ends }, baseURL, fail }: OperatorParts): Pick<Operator, 'start' | 'stop'> {
  const events = new KubeEventRecorder({ kube: store, clock: systemClock, logger: log, instance: POD_NAME })
  let fence = 1 // nobody competes for the folder; a Redis may have seen higher ones
  const operator = createOperator({
    kube: store,
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
    events,
    clock: systemClock,
    random: Math.random,
    log,
    settings: {
      namespace: OPERATOR_NAMESPACE,
      gatewayService: 'headgate-gateway',
      keyringShards: KEYRING_SHARDS,
      mountedShards: MOUNTED_SHARDS,
      publicURL: baseURL,
      revocationWaitMs: REVOCATION_WAIT_MS,
      watchNamespaces: [],
      formerNamespaces: [],
      maxApiKeysPerNamespace: MAX_OBJECTS,
      maxModelBytesPerNamespace: Infinity,
      maxServedModelsPerNamespace: MAX_OBJECTS,
      publishingNamespaces: ['*'],
      redisTakeOver: false,
      allowLoopback: true,
    },
  })
  return {
    start: () => operator.start(),
    stop: async () => {
      await operator.stop()
      await events.flush()
    },
  }
}

async function untilBuilt({ source }: ProjectionEnds): Promise<void> {
  while ((await source.meta()) === undefined) await sleep(LOOK_EVERY_MS)
}

/** Prints the banner, then a command for every key that is or becomes Ready. */
function announce({ config, print, log, version }: StandaloneDeps, { store, state, ledger }: World, baseURL: string): void {
  const models = store.informer(servedModels)
  log.info({ baseURL, version }, 'listening')
  print(startBanner(baseURL, modelNames(models.list()), config.manifests))
  if (ledger.resumed) print(resumedLine(ledger.resumed, SAVE_EVERY_MS))
  store.informer(apiKeys).subscribe((before, after) => {
    if (after === undefined || isReady(before) || !isReady(after)) return
    const { namespace = '', name } = after.metadata
    const file = state.entryPath({ namespace, name: after.status?.secretRef?.name ?? name }, 'SERVICE_API_KEY')
    const shown = { baseURL, key: after, secretFile: file, models: [...models.list()] }
    print(curlLine(shown) + limitsLine(shown))
  })
}

async function endGateway(gateway: Gateway): Promise<void> {
  await gateway.drain(DRAIN_MS)
  await gateway.stop()
}

async function closeProjection({ store, source }: ProjectionEnds): Promise<void> {
  await Promise.all([store.close(), source.close()])
}

async function listen(server: Server, port: number): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', (error) => reject(listenError(error, 'PORT', port)))
  server.listen(port, HOST, resolve)
  await promise
  return server
}

function closeServer(server: Server): void {
  server.close()
  server.closeAllConnections()
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address()
  return typeof address === 'object' && address ? address.port : 0
}
