/** Creates the parts of the kind ApiKey from the context that the operator gives to every kind. */
import { apiKeyKind } from '#api/apikey-kind.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import type { OperatorContext } from '../../kind-controller.ts'
import { Keyring } from '../../shards/keyring.ts'
import { type Informer, refOf } from '#kube/port.ts'
import type { ApiKeyDeps } from './deps.ts'
import { HASH_INDEX, hashesOf } from './hash-source.ts'
import { LimitWatch } from './limit-watch.ts'
import { KeyMemory } from './memory.ts'
import { findByUid } from './orphans.ts'
import { ShownUsage } from './shown-usage.ts'
import { blockingNames, usageStatus, weigh } from './usage.ts'
import { CredentialVault } from './vault.ts'

const KIND = apiKeys.kind

/** The dependencies of the reconcile, and the other sources of reconciles besides changed manifests. */
export interface KeyParts {
  readonly deps: ApiKeyDeps
  readonly limits: LimitWatch
  readonly usage: ShownUsage
}

/** @param onAdopted called with keys whose entries another process has written */
export function createDeps(context: OperatorContext, onAdopted: (uids: Iterable<string>) => void): KeyParts {
  const { deps, projection, acknowledgements, ownWrites, recordEvent, version } = context
  const { kube, clock, settings, leader, log, metrics } = deps
  const keyring = new Keyring({
    kube,
    namespace: settings.namespace,
    clock,
    shards: settings.keyringShards,
    maxModelBytesPerNamespace: settings.maxModelBytesPerNamespace,
    assertLeading: leader.assertLeading,
    warn: (message) => log.warn(message),
    backlog: (namespace) => context.backlogOf(namespace),
    version,
    onWrite: (shard, bytes, seconds) => metrics?.committed(shard, bytes, seconds),
    onAdopted,
    onReleased: (hash) => {
      for (const claimant of cache.byIndex(HASH_INDEX, hash)) context.enqueue(KIND, refOf(claimant), 'change')
    },
  })
  const cache = context.informer(apiKeyKind)
  cache.addIndex(HASH_INDEX, hashesOf)
  const limits = limitWatch(context)
  const usage = shownUsage(context, keyring, cache)
  const made: ApiKeyDeps = {
    kube,
    apiKeys: cache,
    ownWrites,
    keyring,
    projection,
    acknowledgements,
    vault: new CredentialVault(clock),
    memory: new KeyMemory(clock),
    models: context.models,
    gatewayLimits: () => limits.gateways,
    usage,
    spendLoss: (uid) => context.ledger.loss(uid),
    recordEvent,
    clock,
    assertLeading: leader.assertLeading,
    version,
    publicURL: settings.publicURL,
    revocationWaitMs: settings.revocationWaitMs,
    onRevoked: (seconds) => metrics?.revoked(seconds),
    maxPerNamespace: settings.maxApiKeysPerNamespace,
  }
  return { deps: made, limits, usage }
}

function limitWatch({ informer, acknowledgements, models, deps, enqueue }: OperatorContext): LimitWatch {
  const watch = new LimitWatch({
    apiKeys: informer(apiKeyKind),
    live: () => acknowledgements.live,
    clock: deps.clock,
    enqueue: (ref) => enqueue(KIND, ref, 'background'),
  })
  models.onChanged((namespaces) => watch.changed(namespaces))
  return watch
}

/** Compares readings with the last written status, because the cache may lag behind. */
function shownUsage({ deps, enqueue, ownWrites }: OperatorContext, keyring: Keyring, cache: Informer<ApiKey>): ShownUsage {
  return new ShownUsage({
    clock: deps.clock,
    weigh: (uid, usage) => {
      const cached = findByUid(uid, cache)
      if (cached === undefined) return undefined
      const apiKey = ownWrites.newest(cached)
      return weigh(apiKey.status ?? {}, usageStatus(apiKey.status, keyring.get(uid)?.budgets, usage), blockingNames(apiKey))
    },
    enqueue: (uid) => {
      const apiKey = findByUid(uid, cache)
      if (apiKey) enqueue(KIND, refOf(apiKey), 'background')
    },
  })
}
