/** Dependencies of the kind ServedModel: those of every kind, and its own parts. */
import { servedModelKind } from '#api/served-model-kind.ts'
import type { ServedModel } from '#api/served-model.ts'
import { slicesOf } from '#kube/indexes.ts'
import type { Informer } from '#kube/port.ts'
import type { EndpointSlice } from '#kube/resources.ts'
import { MountedSecrets } from '../../shards/mounted-secrets.ts'
import type { OperatorContext } from '../kind.ts'
import { CredentialMemory } from './credential-memory.ts'
import { ModelMemory } from './model-memory.ts'
import { ModelRegistry } from './model-registry.ts'
import type { PublishingRules } from './publishing.ts'

export interface ServedModelDeps extends OperatorContext {
  readonly servedModels: Informer<ServedModel>
  readonly slicesOf: (namespace: string, service: string) => Iterable<EndpointSlice>
  /** The Secrets that gateways mount, written in the background. A finished write enqueues the object. */
  readonly mounted: MountedSecrets
  readonly rules: PublishingRules
  readonly registry: ModelRegistry
  readonly credentials: CredentialMemory
  readonly memory: ModelMemory
}

export function createDeps(context: OperatorContext): ServedModelDeps {
  const { kube, clock, random, settings, leader, log, version, informers } = context
  const rules: PublishingRules = {
    publishingNamespaces: settings.publishingNamespaces,
    /** The right to read namespaces may change while the operator runs. */
    get hasNamespaceLabels() {
      return informers.namespaces?.isSynced('') === true
    },
  }
  return {
    ...context,
    servedModels: context.informer(servedModelKind),
    slicesOf: (namespace, service) => slicesOf(informers.endpointSlices, namespace, service),
    mounted: new MountedSecrets({
      kube,
      namespace: settings.namespace,
      clock,
      assertLeading: leader.assertLeading,
      warn: (message) => log.warn(message),
      backlog: context.backlogOf,
      ...(settings.mountedShards === undefined ? {} : { shards: settings.mountedShards }),
      version,
    }),
    rules,
    registry: new ModelRegistry(settings.maxServedModelsPerNamespace, rules),
    credentials: new CredentialMemory({ clock, random }),
    memory: new ModelMemory(clock),
  }
}
