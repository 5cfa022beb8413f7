/** A set of Secrets that a new leader claims before it decides by them: what a former leader still wanted to write is refused. */
import type { Secret } from '#kube/resources.ts'
import type { Leadership } from '../operator-deps.ts'
import { SecretShards, type SecretShardsOptions } from './secret-shards.ts'

export type ClaimingLeader = Pick<Leadership, 'fence' | 'raiseFence' | 'onFenced'>

export interface ClaimedShardsOptions<Entry> extends Omit<SecretShardsOptions<Entry>, 'claim'> {
  readonly leader: ClaimingLeader
  /** Whether the claim creates the absent Secrets of a set that has any; default: it claims those that exist. */
  readonly isClaimedWhole?: boolean
}

export class ClaimedShards<Entry> extends SecretShards<Entry> {
  readonly #leader: ClaimingLeader
  readonly #isClaimedWhole: boolean

  constructor(options: ClaimedShardsOptions<Entry>) {
    const { fence, onFenced } = options.leader
    super({ ...options, claim: { fence, onFenced } })
    this.#leader = options.leader
    this.#isClaimedWhole = options.isClaimedWhole ?? false
  }

  /** Reads the set for a process that writes nothing to it. @throws KubeError if the Secrets cannot be read */
  async read(): Promise<void> {
    await super.load()
  }

  /**
   * Reads the set and claims it. A higher fencing token is left from a Lease that was deleted, or a newer leader exists; then raising the
   * token fails.
   * @throws KubeError if the Secrets cannot be read or claimed
   */
  override async load(): Promise<readonly Secret[]> {
    const others = await super.load()
    if (this.fence > this.#leader.fence()) await this.#leader.raiseFence(this.fence)
    await this.claim(this.#isClaimedWhole)
    return others
  }
}
