/** Writes Credits, each once: the API server refuses a second one of a name, and then the stored one is compared. */
import type { Credit } from '#api/credit.ts'
import { credits as creditResource } from '#api/resources.ts'
import { formatSignedAmount, parseSignedAmount } from '#contract/values/signed-micros.ts'
import { apiVersionOf, isKubeError, type KubePort } from '#kube/port.ts'
import type { WantedCredit } from './credits-of-payment.ts'

/** `same`: it was there. `different`: another payment has its name, which must not be. */
export type Written = 'created' | 'same' | 'different'

export class CreditBook {
  readonly #kube: Pick<KubePort, 'create' | 'get'>

  constructor(kube: Pick<KubePort, 'create' | 'get'>) {
    this.#kube = kube
  }

  /** @throws KubeError if the Credit may not be stored; the same call works later */
  async write(wanted: WantedCredit): Promise<Written> {
    const made = manifestOf(wanted)
    try {
      await this.#kube.create(creditResource, made)
      return 'created'
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error
      const stored = await this.#kube.get(creditResource, { namespace: '', name: wanted.name })
      if (stored === undefined) throw error // deleted in between
      return isSame(stored, wanted) ? 'same' : 'different'
    }
  }
}

function manifestOf({ name, account, amount, type, reference }: WantedCredit): Credit {
  return {
    apiVersion: apiVersionOf(creditResource),
    kind: creditResource.kind,
    metadata: { name },
    spec: { accountRef: account, amount: formatSignedAmount(amount), type, reference },
  }
}

function isSame({ spec }: Credit, { account, amount, type, reference }: WantedCredit): boolean {
  return (
    spec.accountRef.name === account.name &&
    spec.accountRef.uid === account.uid &&
    parseSignedAmount(spec.amount) === amount &&
    spec.type === type &&
    spec.reference === reference
  )
}
