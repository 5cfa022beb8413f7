/**
 * Which model a name means. Served names and aliases share one namespace. A name means the oldest model in the namespace of the key, else
 * the oldest model that admits this namespace. Pure.
 */
import type { ModelRecord } from '#contract/records/model-record.ts'
import { AgeList, type Aged, isOlder } from './age-list.ts'

/** A model, as far as names are concerned. */
export interface NamedModel extends Aged {
  readonly namespace: string
  /** Served name and aliases. */
  readonly names: readonly string[]
  /** Whether keys of a namespace may use it. */
  admits(namespace: string): boolean
  /** Whether keys of other namespaces may use it: of no others, of some, or of all. */
  readonly openTo: 'None' | 'Some' | 'All'
}

/** The names of a record. */
export function namedModel(
  record: Pick<ModelRecord, 'uid' | 'createdMs' | 'namespace' | 'servedName' | 'aliases' | 'allowedNamespaces'>,
): NamedModel {
  const { uid, createdMs, namespace, servedName, aliases, allowedNamespaces } = record
  const allowed = allowedNamespaces === '*' ? undefined : new Set(allowedNamespaces)
  return {
    uid,
    createdMs,
    namespace,
    names: [...new Set([servedName, ...aliases])],
    admits: (other) => other === namespace || allowed === undefined || allowed.has(other),
    openTo: allowed === undefined ? 'All' : [...allowed].some((other) => other !== namespace) ? 'Some' : 'None',
  }
}

/** The models of one name. Thousands of namespaces may each have one, so no look-up may read all of them. */
class Bearers<T extends NamedModel> {
  readonly #byNamespace = new Map<string, AgeList<T>>()
  /** Models that other namespaces may use. */
  readonly #open = { Some: new AgeList<T>(), All: new AgeList<T>() }

  get isEmpty(): boolean {
    return this.#byNamespace.size === 0
  }

  add(model: T): void {
    const own = this.#byNamespace.get(model.namespace) ?? new AgeList<T>()
    this.#byNamespace.set(model.namespace, own)
    own.add(model)
    if (model.openTo !== 'None') this.#open[model.openTo].add(model)
  }

  delete(model: T): void {
    const own = this.#byNamespace.get(model.namespace)
    own?.delete(model)
    if (own?.length === 0) this.#byNamespace.delete(model.namespace)
    if (model.openTo !== 'None') this.#open[model.openTo].delete(model)
  }

  resolve(namespace: string): T | undefined {
    return this.#byNamespace.get(namespace)?.first ?? this.#oldestOpen(namespace)
  }

  #oldestOpen(namespace: string): T | undefined {
    const { Some: some, All: all } = this.#open
    for (const model of some) {
      if (all.first !== undefined && isOlder(all.first, model)) break
      if (model.admits(namespace)) return model
    }
    return all.first
  }
}

/** Models by name. */
export class ModelNames<T extends NamedModel> {
  readonly #byName = new Map<string, Bearers<T>>()

  /** Every name of a model, in no order. */
  get names(): Iterable<string> {
    return this.#byName.keys()
  }

  has(name: string): boolean {
    return this.#byName.has(name)
  }

  add(model: T): void {
    for (const name of model.names) {
      const models = this.#byName.get(name) ?? new Bearers<T>()
      models.add(model)
      this.#byName.set(name, models)
    }
  }

  delete(model: T): void {
    for (const name of model.names) {
      const models = this.#byName.get(name)
      models?.delete(model)
      if (models?.isEmpty === true) this.#byName.delete(name)
    }
  }

  /**
   * Finds the model that a name means for keys of a namespace.
   * @returns undefined if no model has the name, or none of them admits the namespace. The answer is the same for both, so that no
   * client can distinguish them
   */
  resolve(namespace: string, name: string): T | undefined {
    return this.#byName.get(name)?.resolve(namespace)
  }
}
