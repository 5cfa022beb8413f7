/**
 * Records of an earlier process, as they stand in Redis. Until a Secret has been read, the record's own check sum stands for its
 * credential, so that a Secret that cannot be read stops neither the model nor later edits of it.
 */
import type { ModelRecord } from '../../gateway/shared/model-record.ts'
import type { ServedModel } from '../api/served-model.ts'
import { uidOf } from '../kube/port.ts'

type BackendSpec = ServedModel['spec']['backends'][number]

/** SHA-256 of a backend's credential, and of the one before. */
export interface AdoptedCredential {
  readonly sum: string
  readonly former?: string
}

/** By uid, and within a model by the whole spec of the backend: an edited backend may point elsewhere. */
export class AdoptedRecords {
  readonly #models = new Map<string, ReadonlyMap<string, AdoptedCredential>>()

  /** @param model the manifest that the record was made of, as far as is known */
  adopt(model: ServedModel, record: ModelRecord): void {
    const adopted = new Map<string, AdoptedCredential>()
    for (const spec of model.spec.backends) {
      const backend = record.backends.find(({ name }) => name === spec.name)
      if (backend === undefined || backend.credentialSum === null || !isSameTarget(spec, backend.url, backend.service)) continue
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

/** A model edited while no operator ran may send the credential elsewhere now. */
function isSameTarget({ url, service }: BackendSpec, recordUrl: string | null, recordService: string | null): boolean {
  return service === undefined ? url === recordUrl : recordUrl === null && recordService?.startsWith(`${service.name}.`) === true
}
