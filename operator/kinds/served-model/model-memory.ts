/** State of ServedModels that this process cannot derive from the caches. The loss of this memory costs writes that change nothing. */
import type { Clock } from '#platform/clock.ts'
import type { ModelRecord } from '#contract/records/model-record.ts'
import type { ServedModel } from '#api/served-model.ts'
import { type ObjectRef, refKey, refOf, uidOf } from '#kube/port.ts'
import type { Allowed } from './publishing.ts'

type BackendSpec = ServedModel['spec']['backends'][number]

interface AdoptedCredential {
  readonly sum: string
  readonly former?: string
}

export interface RememberedModel {
  /** The record that the projection was given, and when, ms monotonic. `text` undefined: no record. */
  wanted?: { readonly text: string | undefined; readonly allowedNamespaces: Allowed; readonly atMs: number }
  /** The `mountKey` that the mounted Secrets were given, and when, ms monotonic. */
  mounted?: { readonly key: string; readonly atMs: number }
  /** Redis may have a record of an earlier process. That record stays until this process has another record to replace it. */
  isKept?: boolean
  /** By the whole spec of the backend: an edited backend may have another address. */
  adopted?: ReadonlyMap<string, AdoptedCredential>
}

export class ModelMemory {
  readonly #clock: Clock
  readonly #models = new Map<string, RememberedModel>()
  readonly #uids = new Map<string, string>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  uidOf(ref: ObjectRef): string | undefined {
    return this.#uids.get(refKey(ref))
  }

  get(uid: string): Readonly<RememberedModel> {
    return this.#models.get(uid) ?? {}
  }

  /** @param record the record with this text; undefined: no record */
  setWanted(ref: ObjectRef, uid: string, text: string | undefined, record: Pick<ModelRecord, 'allowedNamespaces'> | undefined): void {
    const model = this.#of(ref, uid)
    model.wanted = { text, allowedNamespaces: record?.allowedNamespaces ?? [], atMs: this.#clock.monotonic() }
    delete model.isKept
  }

  /** @param isOld the pods probably have had these entries since before this process started */
  setMounted(ref: ObjectRef, uid: string, key: string, isOld = false): void {
    this.#of(ref, uid).mounted = { key, atMs: isOld ? -Infinity : this.#clock.monotonic() }
  }

  setKept(ref: ObjectRef, uid: string): void {
    this.#of(ref, uid).isKept = true
  }

  /**
   * Adopts the record that an earlier process wrote to Redis. Until the operator has read a Secret, the check sum in that record stands for
   * the credential. So an unreadable Secret stops neither the model nor later edits of the model.
   * @param model the present manifest, which may be newer than the record
   */
  adopt(model: ServedModel, text: string, record: ModelRecord): void {
    const adopted = new Map<string, AdoptedCredential>()
    for (const spec of model.spec.backends) {
      const backend = record.backends.find(({ name }) => name === spec.name)
      if (backend === undefined || backend.credentialSum === null || !isSameAddress(spec, backend.url, backend.service)) continue
      adopted.set(JSON.stringify(spec), {
        sum: backend.credentialSum,
        ...(backend.formerCredentialSum === null ? {} : { former: backend.formerCredentialSum }),
      })
    }
    const uid = uidOf(model)
    this.#of(refOf(model), uid).adopted = adopted
    this.setWanted(refOf(model), uid, text, record)
  }

  adoptedCredential(uid: string, spec: BackendSpec): AdoptedCredential | undefined {
    return this.#models.get(uid)?.adopted?.get(JSON.stringify(spec))
  }

  forget(ref: ObjectRef, uid: string): void {
    this.#models.delete(uid)
    if (this.#uids.get(refKey(ref)) === uid) this.#uids.delete(refKey(ref))
  }

  #of(ref: ObjectRef, uid: string): RememberedModel {
    const known = this.#models.get(uid) ?? {}
    this.#models.set(uid, known)
    this.#uids.set(refKey(ref), uid)
    return known
  }
}

/** A model that was edited while no operator ran may have another address, which must not get the adopted credential. */
function isSameAddress({ url, service }: BackendSpec, recordUrl: string | null, recordService: string | null): boolean {
  return service === undefined ? url === recordUrl : recordUrl === null && recordService?.startsWith(`${service.name}.`) === true
}
