/** A set of Secrets that a new leader claims before it decides by them: what a former leader still wanted to write is refused. */
import type { Secret } from '#kube/resources.ts'
import type { Level } from '../loop/level.ts'
import type { Leadership } from '../operator-deps.ts'
import { SecretShards, type SecretShardsOptions } from './secret-shards.ts'
import { LOST, ShardLost } from './shard-writer.ts'

export type ClaimingLeader = Pick<Leadership, 'fence' | 'raiseFence' | 'onFenced'>

export interface ClaimedShardsOptions<Entry> extends Omit<SecretShardsOptions<Entry>, 'claim'> {
  readonly leader: ClaimingLeader
  /** Whether the first commit, or the claim of a set that has a Secret, creates all others; default: those that exist are claimed. */
  readonly isClaimedWhole?: boolean
  /** Whether entries are known to be missing after the set was read, so that absent Secrets are lost; default: no. */
  readonly lacksEntries?: () => boolean
}

export class ClaimedShards<Entry> extends SecretShards<Entry> {
  readonly #leader: ClaimingLeader
  readonly #isClaimedWhole: boolean
  readonly #lacksEntries: () => boolean

  readonly #warn: (message: string) => void

  constructor(options: ClaimedShardsOptions<Entry>) {
    const { fence, onFenced } = options.leader
    super({ ...options, claim: { fence, onFenced } })
    this.#leader = options.leader
    this.#warn = options.warn
    this.#isClaimedWhole = options.isClaimedWhole ?? false
    this.#lacksEntries = options.lacksEntries ?? (() => false)
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
    if (this.#lacksEntries()) this.#loseAbsent()
    await this.claim(this.#isClaimedWhole)
    return others
  }

  override commit(entry: Entry, level: Level): void {
    super.commit(entry, level)
    if (this.#isClaimedWhole) this.writeSoon(this.absent.filter(({ frozen, isDirty }) => frozen === undefined && !isDirty))
  }

  /** Nothing is written to lost Secrets until somebody has restored them. */
  #loseAbsent(): void {
    for (const shard of this.absent) {
      shard.frozen = LOST
      this.#warn(new ShardLost(shard.name).message)
    }
  }
}
