/** The parts of an operator that hold state, and what the two reconciles get of them. Composes; nothing runs yet. */
import { OutageLog } from '../gateway/shared/outage-log.ts'
import { Calm } from './apikey/calm.ts'
import { ChangeSignals } from './apikey/change-signals.ts'
import type { ApiKeyDeps, RecordEvent } from './apikey/deps.ts'
import { rescue } from './apikey/rescue.ts'
import { CredentialVault } from './apikey/vault.ts'
import { EVENTS } from './api/conditions.ts'
import { Keyring } from './keyring/keyring.ts'
import type { OperatorDeps } from './operator-deps.ts'
import { Acknowledgements } from './projection/acknowledgements.ts'
import { Projection } from './projection/projection.ts'
import type { ServedModelDeps } from './served-model/deps.ts'
import { GatewayFiles } from './served-model/gateway-files.ts'
import { SliceIndex } from './slice-index.ts'

/** What `createParts` makes. */
export interface OperatorParts {
  readonly keyring: Keyring
  readonly projection: Projection
  readonly acknowledgements: Acknowledgements
  readonly files: GatewayFiles
  readonly keyDeps: ApiKeyDeps
  readonly modelDeps: ServedModelDeps
}

/** What the parts tell the rest of the operator. */
export interface PartsListener {
  /** The gateways have been asked what they have applied. */
  readonly polled: () => void
  /** A reconcile found its ApiKey gone. */
  readonly gone: () => void
}

export function createParts(deps: OperatorDeps, { polled, gone }: PartsListener): OperatorParts {
  const { kube, clock, leader, settings, informers, metrics } = deps
  const { assertLeading } = leader
  const slices = new SliceIndex(informers.endpointSlices)
  const recordEvent: RecordEvent = (object, reason, note) => deps.events.record(object, { ...EVENTS[reason], reason, note })
  const warn = (message: string): void => deps.log.warn(message)
  const { namespace, keyringShards: shards } = settings
  const onCommit = (...commit: [shard: number, bytes: number, seconds: number]): void => metrics?.committed(...commit)
  const keyring = new Keyring({ kube, namespace, shards, assertLeading, warn, onCommit })
  const projection = createProjection(deps, (id, text) => rescue(id, text, keyDeps))
  const acknowledgements = createAcknowledgements(deps, projection, slices, polled)
  const files = new GatewayFiles({ kube, namespace, clock, assertLeading, warn })
  const shared = { kube, projection, acknowledgements, recordEvent, clock, assertLeading }
  const keyDeps: ApiKeyDeps = {
    ...shared,
    apiKeys: informers.apiKeys,
    keyring,
    vault: new CredentialVault(),
    changes: new ChangeSignals(),
    calm: new Calm(clock),
    publicURL: settings.publicURL,
    revocationWaitMs: settings.revocationWaitMs,
    onRevoked: (seconds) => metrics?.revoked(seconds),
    onGone: gone,
  }
  const modelDeps: ServedModelDeps = {
    ...shared,
    servedModels: informers.servedModels,
    services: informers.services,
    namespaces: informers.namespaces,
    slicesOf: (ns, service) => slices.of(ns, service),
    files,
    allowLoopback: settings.allowLoopback,
  }
  return { keyring, projection, acknowledgements, files, keyDeps, modelDeps }
}

function createProjection(
  { store, clock, leader, log }: OperatorDeps,
  rescueKey: (id: string, text: string) => Promise<string | undefined>,
): Projection {
  const { fence, raiseFence, assertLeading, onFenced } = leader
  return new Projection({
    store,
    clock,
    fence,
    raiseFence,
    assertLeading,
    onFenced,
    rescue: rescueKey,
    log,
    outage: new OutageLog('Redis', log, clock),
  })
}

function createAcknowledgements(
  { store, clock, settings }: OperatorDeps,
  projection: Projection,
  slices: SliceIndex,
  onPoll: () => void,
): Acknowledgements {
  const gatewaySlices = (): ReturnType<SliceIndex['of']> => slices.of(settings.namespace, settings.gatewayService)
  return new Acknowledgements({ store, clock, epoch: () => projection.epoch, gatewaySlices, onPoll })
}
