/** Reads the usage of one account out of the Secrets, on any replica. */
import type { KubePort } from '#kube/port.ts'
import { HISTORY_SET, USAGE_SET } from '../shards/sets.ts'
import { type ClosedUsage, type OpenUsage, readClosedUsage } from '../shards/usage-entry.ts'
import { SecretReader } from './secret-reader.ts'

/** The usage of one account. */
export interface AccountUsage {
  readonly open: OpenUsage | undefined
  readonly closed: ClosedUsage | undefined
}

export class UsageReader {
  readonly #secrets: SecretReader

  constructor(deps: { readonly kube: Pick<KubePort, 'get'>; readonly namespace: string }) {
    this.#secrets = new SecretReader(deps)
  }

  /** @throws KubeError if the Secrets cannot be read; EntriesUnreadable if they are damaged or of another build */
  async read(account: string): Promise<AccountUsage> {
    const [open, history] = await Promise.all([this.#secrets.entry(USAGE_SET, account), this.#secrets.entry(HISTORY_SET, account)])
    return { open: open.entry, closed: history.entry && readClosedUsage(history.entry) }
  }
}
