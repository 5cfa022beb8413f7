/** Prepaid accounts and many Credits, as a payment service writes and sees them. */
import { hash } from 'node:crypto'
import { conditionOf, type KubeAdmin, objectPath, type TestObject } from '../support/kube-admin.ts'
import { waitFor } from '../support/wait-for.ts'
import { GROUP } from './many-keys.ts'

const PLAN = 'credits-plan'
const FIRST_PAYMENT = Date.UTC(2026, 0, 1)
/** Longest time until all Credits are Booked, ms. */
const BOOKED_MS = 1_200_000

export function planManifest(): TestObject {
  return { apiVersion: GROUP, kind: 'Plan', metadata: { name: PLAN }, spec: { models: ['*'] } }
}

export function accountManifest(name: string, namespace: string): TestObject {
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': namespace } }
  return { apiVersion: GROUP, kind: 'Account', metadata: { name }, spec: { planRef: { name: PLAN }, billing: 'Prepaid', namespaces } }
}

export function creditManifest(name: string, account: string): TestObject {
  const spec = { accountRef: { name: account }, amount: '10', type: 'TopUp' }
  return { apiVersion: GROUP, kind: 'Credit', metadata: { name }, spec }
}

/** A Credit as docs/money.md advises: named after a hash of the payment's id, which is its reference. @param at number of the payment */
export function paymentManifest(payment: string, account: string, at: number): TestObject {
  const id = hash('sha256', payment, 'hex')
  const { spec, ...credit } = creditManifest(`stripe-${id.slice(0, 40)}`, account)
  const time = new Date(FIRST_PAYMENT + at * 61_000).toISOString()
  return { ...credit, spec: { ...spec, amount: `${5 * (1 + (at % 40))}.00`, reference: `pi_${id.slice(40)}`, time } }
}

/** Follows all Credits as a client, by one watch. */
export class CreditWatch {
  readonly #stop = new AbortController()
  readonly #booked = new Set<string>()

  constructor(kube: KubeAdmin) {
    void kube.watch(objectPath(GROUP, 'Credit'), this.#stop.signal, ({ object }) => {
      if (conditionOf(object, 'Booked')?.status === 'True') this.#booked.add(object.metadata.name)
    })
  }

  /** Number of Credits that were Booked so far. */
  get booked(): number {
    return this.#booked.size
  }

  async until(count: number): Promise<void> {
    await waitFor(`${count} Credits to be Booked`, () => this.booked >= count, { deadlineMs: BOOKED_MS })
  }

  stop(): void {
    this.#stop.abort()
  }
}
