/** Dependencies of the kind ApiKey: those of every kind, and its own parts. */
import { apiKeyKind } from '#api/apikey-kind.ts'
import type { ApiKey } from '#api/apikey.ts'
import { type Informer, type ObjectRef, refOf } from '#kube/port.ts'
import type { Level } from '../../loop/level.ts'
import { Keyring } from '../../shards/keyring.ts'
import type { OperatorContext } from '../kind.ts'
import { HASH_INDEX, hashesOf } from './hash-source.ts'
import { LimitWatch } from './limit-watch.ts'
import { KeyMemory } from './memory.ts'
import { findByUid } from './orphans.ts'
import { ShownUsage } from './shown-usage.ts'
import { effective } from '#policy/effective.ts'
import { usageStatus, weigh } from './usage.ts'
import { CredentialVault } from './vault.ts'

export interface ApiKeyDeps extends OperatorContext {
  readonly apiKeys: Informer<ApiKey>
  readonly keyring: Keyring
  readonly vault: CredentialVault
  readonly memory: KeyMemory
  /** The conditions of limits besides the manifests. */
  readonly limits: LimitWatch
  readonly shownUsage: ShownUsage
}

/** @param onAdopted called with keys whose entries another process has written */
export function createDeps(context: OperatorContext, onAdopted: (uids: Iterable<string>) => void): ApiKeyDeps {
  const { kube, clock, settings, leader, log, metrics, acknowledgements, models, version } = context
  const apiKeys = context.informer(apiKeyKind)
  const enqueue = (ref: ObjectRef, level: Level): void => context.enqueue(apiKeyKind.resource.kind, ref, level)
  apiKeys.addIndex(HASH_INDEX, hashesOf)
  const keyring = new Keyring({
    kube,
    namespace: settings.namespace,
    clock,
    shards: settings.keyringShards,
    maxModelBytesPerNamespace: settings.maxModelBytesPerNamespace,
    assertLeading: leader.assertLeading,
    warn: (message) => log.warn(message),
    backlog: context.backlogOf,
    version,
    onWrite: (shard, bytes, seconds) => metrics?.committed(shard, bytes, seconds),
    onAdopted,
    onReleased: (hash) => {
      for (const claimant of apiKeys.byIndex(HASH_INDEX, hash)) enqueue(refOf(claimant), 'change')
    },
  })
  const limits = new LimitWatch({
    apiKeys,
    live: () => acknowledgements.live,
    clock,
    enqueue: (ref) => enqueue(ref, 'background'),
  })
  models.onChanged((namespaces) => limits.changed(namespaces))
  const shownUsage = new ShownUsage({
    clock,
    weigh: (uid, usage) => {
      const cached = findByUid(uid, apiKeys)
      if (cached === undefined) return undefined
      const apiKey = context.ownWrites.newest(cached) // the cache may lag behind the last written status
      const { budgets } = effective(keyring.get(uid) ?? {})
      return weigh(apiKey.status ?? {}, usageStatus(apiKey.status, budgets, usage), budgets)
    },
    enqueue: (uid) => {
      const apiKey = findByUid(uid, apiKeys)
      if (apiKey) enqueue(refOf(apiKey), 'background')
    },
  })
  return { ...context, apiKeys, keyring, vault: new CredentialVault(clock), memory: new KeyMemory(clock), limits, shownUsage }
}
