/**
 * Records which namespace has used which hash. Another namespace gets a used hash only with a proof, and a revoked hash no longer works in its own
 * namespace. Durable, and never deleted.
 */
import type { KeyHash } from '#contract/values/credential.ts'
import type { Level } from '../../loop/level.ts'
import { MultiMap } from '../../shards/multi-map.ts'
import { SecretShards, type SecretShardsDeps } from '../../shards/secret-shards.ts'
import { VALUES_SET } from '../../shards/sets.ts'
import { type UsedValue, usedValueId } from '../../shards/used-value.ts'

/** Largest number of values of one namespace that are kept. */
export const MAX_USED_VALUES = 20_000

/**
 * What a namespace may do with a hash. `Known`: the namespace has used it before. `Taken`: it was revoked here, or used elsewhere. `Full`: the
 * namespace has used as many as are kept.
 */
export type ValueUse = 'New' | 'Known' | 'Taken' | 'Full'

export class UsedValues extends SecretShards<UsedValue> {
  readonly #byHash = new MultiMap<KeyHash>()
  readonly #byNamespace = new MultiMap<string>()
  /** Settle what waits for an entry, by its id. */
  readonly #waiting = new Map<string, (error: Error | undefined) => void>()

  readonly #most: number

  /** @param most values of one namespace */
  constructor(deps: SecretShardsDeps, most: number = MAX_USED_VALUES) {
    super({ ...VALUES_SET, ...deps, groupOf: ({ namespace }) => namespace })
    this.#most = most
    this.onSettled((id, error) => {
      this.#waiting.get(id)?.(error)
      this.#waiting.delete(id)
    })
  }

  /** @param isProven whether the ApiKey names the hash with a proof: then other namespaces do not matter */
  useOf(hash: KeyHash, namespace: string, isProven: boolean): ValueUse {
    const uses = [...this.#byHash.get(hash)].flatMap((id) => this.newest(id) ?? [])
    const own = uses.find((use) => use.namespace === namespace)
    if (own?.isRevoked === true || (!isProven && uses.some((use) => use !== own))) return 'Taken'
    if (own !== undefined) return 'Known'
    return !isProven && this.#isFull(namespace) ? 'Full' : 'New'
  }

  /** Whether the end of a value is recorded; true also for a namespace that has no room for it. */
  isRevoked(hash: KeyHash, namespace: string): boolean {
    return (this.newest(usedValueId({ hash, namespace })) ?? { isRevoked: this.#isFull(namespace) }).isRevoked
  }

  /** Resolves once the value is durable. @throws KubeError or ShardFull */
  async record(value: UsedValue, level: Level): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const id = usedValueId(value)
    const others = this.#waiting.get(id)
    this.#waiting.set(id, (error) => {
      others?.(error)
      if (error) reject(error)
      else resolve()
    })
    this.commit(value, level)
    await promise
  }

  protected override changed(ids: Iterable<string>): void {
    for (const id of ids) {
      const value = this.newest(id)
      if (value === undefined) continue // a refused commit; the indexes may name an id without an entry
      this.#byHash.add(value.hash, id)
      this.#byNamespace.add(value.namespace, id)
    }
  }

  #isFull(namespace: string): boolean {
    return this.#byNamespace.count(namespace) >= this.#most
  }
}
