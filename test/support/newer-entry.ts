/** One keyring entry that a newer version of the operator has written. This version must not change its bytes. */
import { unpackShard } from '#contract/records/shard-text.ts'
import { packShard } from './pack-shard.ts'
import { secrets } from '#kube/resources.ts'
import type { OperatorWorld } from './operator-world.ts'

/** At most one per world. */
export class NewerEntry {
  readonly #world: OperatorWorld
  #written: { readonly uid: string; readonly shard: string; readonly text: string } | undefined

  constructor(world: OperatorWorld) {
    this.#world = world
  }

  get uid(): string | undefined {
    return this.#written?.uid
  }

  /** Turns the entry of a key into one of version 9, beside the operator. @returns whether there was an entry, and none before */
  async write(uid: string): Promise<boolean> {
    if (this.#written) return false
    for (const secret of await this.#world.shards('keyring')) {
      const texts = await textsOf(secret.data)
      const at = texts.findIndex((text) => (JSON.parse(text) as { uid?: unknown }).uid === uid)
      if (at < 0) continue
      const text = JSON.stringify({ ...(JSON.parse(texts[at] ?? '') as object), v: 9, limits: { tokens: 7 } })
      const [shards = 0, shard = 0] = secret.metadata.name.split('-').slice(2).map(Number)
      const packed = await packShard({ shards, shard }, texts.with(at, text))
      await this.#world.objects.update(secrets, { ...secret, data: { records: packed.toString('base64') } })
      this.#written = { uid, shard: secret.metadata.name, text }
      return true
    }
    return false
  }

  /** Records that the shard was destroyed: its entries are lost. */
  lost(shard: string): void {
    if (this.#written?.shard === shard) this.#written = { ...this.#written, shard: '' }
  }

  async isIntact(): Promise<boolean> {
    if (!this.#written || this.#written.shard === '') return true
    const { shard, text } = this.#written
    const secret = await this.#world.secret(shard, 'headgate')
    return (await textsOf(secret?.data)).includes(text)
  }
}

async function textsOf(data: Readonly<Record<string, string>> | undefined): Promise<readonly string[]> {
  try {
    return await unpackShard(Buffer.from(data?.['records'] ?? '', 'base64'))
  } catch {
    return [] // the story has damaged the shard
  }
}
