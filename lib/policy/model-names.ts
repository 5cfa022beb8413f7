/**
 * Which model a name means. Served names and aliases share one name space. A name means the oldest model in the namespace of the key, else
 * the oldest model that admits this namespace. Pure.
 */
import type { ModelRecord } from '#contract/records/model-record.ts'
import { AgeList, type Aged } from './age-list.ts'

/** A model, as far as names are concerned. */
export interface NamedModel extends Aged {
  readonly namespace: string
  /** Served name and aliases. */
  readonly names: readonly string[]
  /** Whether keys of a namespace may use it. */
  admits(namespace: string): boolean
}

/** The names of a record. */
export function namedModel({ uid, createdMs, namespace, servedName, aliases, allowedNamespaces }: ModelRecord): NamedModel {
  const allowed = allowedNamespaces === '*' ? undefined : new Set(allowedNamespaces)
  return {
    uid,
    createdMs,
    namespace,
    names: [...new Set([servedName, ...aliases])],
    admits: (other) => other === namespace || allowed === undefined || allowed.has(other),
  }
}

/** Models by name. */
export class ModelNames<T extends NamedModel> {
  readonly #byName = new Map<string, AgeList<T>>()

  /** Every name of a model, in no order. */
  get names(): Iterable<string> {
    return this.#byName.keys()
  }

  add(model: T): void {
    for (const name of model.names) {
      const models = this.#byName.get(name) ?? new AgeList<T>()
      models.add(model)
      this.#byName.set(name, models)
    }
  }

  delete(model: T): void {
    for (const name of model.names) {
      const models = this.#byName.get(name)
      models?.delete(model)
      if (models?.length === 0) this.#byName.delete(name)
    }
  }

  /**
   * Finds the model that a name means for keys of a namespace.
   * @returns undefined if no model has the name, or none of them admits the namespace. The answer is the same for both, so that no
   * client can distinguish them
   */
  resolve(namespace: string, name: string): T | undefined {
    let admitting: T | undefined
    for (const model of this.#byName.get(name) ?? []) {
      if (model.namespace === namespace) return model
      if (admitting === undefined && model.admits(namespace)) admitting = model
    }
    return admitting
  }
}
