/**
 * Finds keyring lines whose ApiKey is gone without our finalizer having seen it (removed by force, or a lost watch), and lines of deleted
 * keys that are old enough to be dropped. An empty list of ApiKeys is more likely a mistake than a mass deletion: above a bound nothing
 * is swept.
 */
import type { KeyringLine } from '../../gateway/shared/keyring-line.ts'
import type { Informer } from '../kube/port.ts'
import type { ApiKey } from '../api/apikey.ts'
import { apiKeys } from '../kube/resources.ts'
import { deletedLine } from './decide.ts'
import type { ApiKeyDeps } from './deps.ts'

/** A deleted key's line stays this long, ms: longer than any mounted file or stale replica lags. */
const KEEP_DELETED_MS = 24 * 3600 * 1000
/** A sweep of more than this many lines, and of more than this share, is refused. */
const MOST_VICTIMS = 10
const MOST_SHARE = 0.2

/** What a sweep found. */
export interface SweepPlan {
  /** Lines without an ApiKey of that uid in the cache. */
  readonly orphans: readonly KeyringLine[]
  /** Too many orphans to believe it. */
  readonly refused: boolean
  /** Lines of deleted keys that may go. */
  readonly old: readonly KeyringLine[]
}

/** Pure. @param watches whether a namespace is watched: the cache knows nothing of others */
export function planSweep(
  lines: Iterable<KeyringLine>,
  cache: Informer<ApiKey>,
  watches: (namespace: string) => boolean,
  now: number,
): SweepPlan {
  const orphans: KeyringLine[] = []
  const old: KeyringLine[] = []
  let live = 0
  for (const line of lines) {
    if (line.deleted !== null) {
      if (line.deleted + KEEP_DELETED_MS < now) old.push(line)
      continue
    }
    live += 1
    const { ns: namespace, name, uid } = line
    if (watches(namespace) && cache.get({ namespace, name })?.metadata.uid !== uid) orphans.push(line)
  }
  return { orphans, refused: orphans.length > MOST_VICTIMS && orphans.length > live * MOST_SHARE, old }
}

/**
 * Ends the keys whose ApiKey is gone in the keyring, each after a live read that confirms it, and drops old lines.
 * @returns uids of the keys ended, which the projection may still hold
 */
export async function revokeOrphans(
  { keyring, apiKeys: cache, kube, clock, assertLeading }: Pick<ApiKeyDeps, 'keyring' | 'apiKeys' | 'kube' | 'clock' | 'assertLeading'>,
  watches: (namespace: string) => boolean,
  onRefused: (count: number) => void,
): Promise<readonly string[]> {
  const { orphans, refused, old } = planSweep(keyring.lines(), cache, watches, clock.now())
  for (const line of old) await keyring.forget(line.uid)
  if (refused) {
    onRefused(orphans.length)
    return []
  }
  const ended: string[] = []
  for (const line of orphans) {
    const present = await kube.get(apiKeys, { namespace: line.ns, name: line.name })
    if (present?.metadata.uid === line.uid) continue
    assertLeading()
    await keyring.commit(deletedLine(line, clock.now()))
    ended.push(line.uid)
  }
  return ended
}

/** `revokeOrphans`, and the gateways are told. @returns how many keys it revoked */
export async function sweep(
  deps: ApiKeyDeps,
  watches: (namespace: string) => boolean,
  onRefused: (count: number) => void,
): Promise<number> {
  const ended = await revokeOrphans(deps, watches, onRefused)
  await Promise.all(ended.map((uid) => deps.projection.delete('key', uid).catch(() => undefined))) // the wish is kept until the store is back
  return ended.length
}
