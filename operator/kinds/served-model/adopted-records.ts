/**
 * Records that an earlier process wrote to Redis. Until the operator has read a Secret, the check sum in the record stands for the
 * credential. So an unreadable Secret stops neither the model nor later edits of the model.
 */
import type { ModelRecord } from '#contract/records/model-record.ts'
import type { ServedModel } from '#api/served-model.ts'
import { uidOf } from '#kube/port.ts'

type BackendSpec = ServedModel['spec']['backends'][number]

/** SHA-256 of a backend's credential, and of the former credential. */
export interface AdoptedCredential {
  readonly sum: string
  readonly former?: string
}

/** Credentials of former records, by uid and by the whole spec of the backend: an edited backend may have another address. */
export class AdoptedRecords {
  readonly #models = new Map<string, ReadonlyMap<string, AdoptedCredential>>()

  /** @param model the present manifest, which may be newer than the record */
  adopt(model: ServedModel, record: ModelRecord): void {
    const adopted = new Map<string, AdoptedCredential>()
    for (const spec of model.spec.backends) {
      const backend = record.backends.find(({ name }) => name === spec.name)
      if (backend === undefined || backend.credentialSum === null || !isSameAddress(spec, backend.url, backend.service)) continue
      adopted.set(JSON.stringify(spec), {
        sum: backend.credentialSum,
        ...(backend.formerCredentialSum === null ? {} : { former: backend.formerCredentialSum }),
      })
    }
    if (adopted.size > 0) this.#models.set(uidOf(model), adopted)
  }

  credentialOf(uid: string, spec: BackendSpec): AdoptedCredential | undefined {
    return this.#models.get(uid)?.get(JSON.stringify(spec))
  }

  forget(uid: string): void {
    this.#models.delete(uid)
  }
}

/** A model that was edited while no operator ran may have another address, which must not get the adopted credential. */
function isSameAddress({ url, service }: BackendSpec, recordUrl: string | null, recordService: string | null): boolean {
  return service === undefined ? url === recordUrl : recordUrl === null && recordService?.startsWith(`${service.name}.`) === true
}
