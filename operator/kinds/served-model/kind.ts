/** Composes the kind ServedModel. Decides nothing. */
import { servedModelKind } from '#api/served-model-kind.ts'
import type { KindController, KindRow, OperatorContext } from '../../kind-controller.ts'
import { slicesOf } from '#kube/indexes.ts'
import { createReconcile } from '../../loop/reconciler.ts'
import { MountedSecrets } from '../../shards/mounted-secrets.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import type { ServedModelDeps } from './deps.ts'
import { ModelController } from './model-controller.ts'

const KIND = servedModelKind.resource.kind

/** The row of ServedModel in the table of kinds. */
export const servedModelRow: KindRow = { api: servedModelKind, create: (context) => new ServedModels(context) }

/** All ServedModels of one operator, and the Secrets that gateways mount for them. */
class ServedModels implements KindController {
  readonly queues
  readonly #context: OperatorContext
  readonly #mounted: MountedSecrets
  readonly #controller: ModelController

  constructor(context: OperatorContext) {
    const { clock, random, log } = context.deps
    this.#context = context
    this.#mounted = mountedSecrets(context)
    const deps = depsOf(context, this.#mounted)
    this.#controller = new ModelController(deps)
    const reconcile = createReconcile(this.#controller.reconciled, { clock, log, random })
    this.queues = [{ name: KIND, reconcile, informer: deps.servedModels }]
    this.#mounted.onSettled((uid) => this.#controller.arrived(uid))
  }

  async prepare(): Promise<readonly ProjectionChange[]> {
    await Promise.all([this.#mounted.load(), this.#context.deps.informers.namespaces?.synced]) // without the labels of namespaces, selectors would select none
    return await this.#controller.prepare()
  }

  start(): void {
    this.#mounted.start()
    this.#controller.start()
  }

  async stop(): Promise<void> {
    await this.#mounted.flush().catch((error: unknown) => {
      this.#context.deps.log.warn(`the Secrets of the gateways could not be written at the end (${String(error)})`)
    })
    this.#mounted.stop()
  }

  onWritten(uid: string): void {
    this.#controller.arrived(uid)
  }

  keeps(uid: string): boolean {
    return this.#controller.keeps(uid)
  }

  onPoll(): void {
    this.#controller.polled()
  }

  onAvailability(): void {
    this.#controller.availabilityChanged()
  }

  onVersion(): void {
    this.#controller.versionChanged()
  }

  check(): void {
    this.#mounted.check()
  }
}

function mountedSecrets({ deps, backlogOf, version }: OperatorContext): MountedSecrets {
  const { kube, clock, settings, leader, log } = deps
  return new MountedSecrets({
    kube,
    namespace: settings.namespace,
    clock,
    assertLeading: leader.assertLeading,
    warn: (message) => log.warn(message),
    backlog: (namespace) => backlogOf(namespace),
    ...(settings.mountedShards === undefined ? {} : { shards: settings.mountedShards }),
    version,
  })
}

function depsOf(context: OperatorContext, mounted: MountedSecrets): ServedModelDeps {
  const { deps, projection, acknowledgements, ownWrites, recordEvent, version } = context
  const { kube, informers, store, clock, settings, leader } = deps
  const servedModels = context.informer(servedModelKind)
  return {
    kube,
    servedModels,
    services: informers.services,
    endpointSlices: informers.endpointSlices,
    namespaces: informers.namespaces,
    slicesOf: (namespace, service) => slicesOf(informers.endpointSlices, namespace, service),
    projection,
    standingRecords: async () => {
      const epoch = (await store.meta())?.epoch
      return epoch === undefined ? [] : await store.records(epoch, 'model', await store.ids(epoch, 'model'))
    },
    acknowledgements,
    mounted,
    ownWrites,
    queue: {
      enqueue: (ref, level) => context.enqueue(KIND, ref, level),
      enqueueAfter: (ref, delayMs, level) => context.enqueueAfter(KIND, ref, delayMs, level),
    },
    models: context.models,
    recordEvent,
    clock,
    random: deps.random,
    version,
    assertLeading: leader.assertLeading,
    settings,
  }
}
