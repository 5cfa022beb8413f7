/** The operator's books of accounts and Credits and their keeper, in this process, on a real API server and a real Redis. */
import type { KubePort } from '#kube/port.ts'
import { KubeCredentials } from '#kube/kube-credentials.ts'
import { RawClient } from '#kube/raw-client.ts'
import { Transport } from '#kube/transport.ts'
import { type Clock, systemClock } from '#platform/clock.ts'
import { AccountBooks } from '../../operator/accounts/account-books.ts'
import { BalanceKeeper } from '../../operator/accounts/balance-keeper.ts'
import { CreditBooks } from '../../operator/accounts/credit-books.ts'
import type { BalanceStore } from '../../operator/books/balance-store.ts'
import { INSTALLATION } from './credit-operator.ts'

export interface RealCreditBooksDeps {
  readonly kube: KubePort
  readonly namespace: string
  readonly store: BalanceStore
  /** Of the operator. */
  readonly clock: Clock
  /** Names of the gateway processes, which all live. */
  readonly processes: readonly string[]
}

export class RealCreditBooks {
  readonly books: AccountBooks
  readonly credits: CreditBooks
  readonly keeper: BalanceKeeper
  readonly failures: string[] = []

  constructor({ kube, namespace, store, clock, processes }: RealCreditBooksDeps) {
    const leader = { fence: () => 1, raiseFence: () => Promise.reject(new Error('a newer leader')), onFenced: () => undefined }
    const warn = (line: string): void => void this.failures.push(line)
    const deps = { kube, namespace, clock, assertLeading: () => undefined, warn, leader }
    this.books = new AccountBooks({ ...deps, installation: () => INSTALLATION })
    this.credits = new CreditBooks(deps)
    this.keeper = new BalanceKeeper({
      ...{ store, books: this.books, credits: this.credits, clock, assertLeading: () => undefined },
      live: () => processes.map((name) => ({ process: `pod-${name}/${name}`, pod: `pod-${name}`, acknowledgement: undefined })),
      serving: () => new Set(processes.map((name) => `pod-${name}`)),
      outage: { failed: warn, works: () => undefined },
      isPrepaid: () => true,
    })
  }

  async start(): Promise<void> {
    await this.books.load()
    await this.credits.load()
    this.keeper.start()
  }

  async stop(): Promise<void> {
    await this.keeper.stop()
    this.books.stop()
    this.credits.stop()
  }
}

/** The operator's own client of an API server. @param kubeconfig path */
export function realKubePort(kubeconfig: string): RawClient {
  const transport = new Transport({ credentials: new KubeCredentials(kubeconfig), clock: systemClock })
  return new RawClient({ transport, clock: systemClock })
}
