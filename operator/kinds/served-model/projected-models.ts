/**
 * The facts about projected models that limits of keys depend on: the namespaces that may call each name, and whether the model has a price
 * and a bound on its answers. The ServedModel kind writes the facts with its records; the ApiKey kind reads them.
 */
import type { ModelRecord } from '#contract/records/model-record.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { admits, listAdmits, nameList } from '#policy/model-access.ts'
import { namedModel, type NamedModel, ModelNames } from '#policy/model-names.ts'

/** Namespaces whose memory is kept; more are computed again. */
const MAX_REMEMBERED = 1_000

/** One model as the gateways have it. */
export interface ProjectedModel extends NamedModel {
  readonly servedName: string
  readonly allowedNamespaces: ModelRecord['allowedNamespaces']
  readonly isPriced: boolean
  /** Its record bounds how long an answer, or prompt and answer together, can be. */
  readonly isBounded: boolean
}

export type Lack = 'isPriced' | 'isBounded'

/** Called when keys of these namespaces may call other models, or models with other gaps. */
export type ModelsListener = (namespaces: ProjectedModel['allowedNamespaces']) => void

export class ProjectedModels {
  readonly #models = new Map<string, ProjectedModel>()
  readonly #names = new ModelNames<ProjectedModel>()
  /** The models of each namespace, and those that keys of other namespaces may call. */
  readonly #byNamespace = new Map<string, Set<ProjectedModel>>()
  readonly #open = new Set<ProjectedModel>()
  /** Number of models that lack something. */
  #lacking = 0
  /** Models that a namespace can call by some name. A change removes the namespaces that it concerns. */
  readonly #callable = new Map<string, readonly ProjectedModel[]>()
  readonly #listeners: ModelsListener[] = []

  onChanged(listener: ModelsListener): void {
    this.#listeners.push(listener)
  }

  set(record: ModelRecord): void {
    this.#replace(record.uid, projectedModel(record))
  }

  delete(uid: string): void {
    this.#replace(uid, undefined)
  }

  /** Served names, sorted, of the models that lack something and that a key of this namespace with these allow-lists may call. */
  lacking(lack: Lack, namespace: string, models: KeyRecord['models']): readonly string[] {
    if (this.#lacking === 0) return []
    const callable = this.#callableIn(namespace).filter((model) => !model[lack])
    return [...new Set(callable.filter(({ names }) => admits({ models }, names)).map(({ servedName }) => servedName))].sort()
  }

  /** Whether a key of this namespace with these allow-lists may call a model with a price. */
  hasPriced(namespace: string, models: KeyRecord['models']): boolean {
    return this.#callableIn(namespace).some(({ isPriced, names }) => isPriced && admits({ models }, names))
  }

  /** Entries of an allow-list that no model matches. */
  unresolved(entries: readonly string[]): readonly string[] {
    return entries.filter((entry) => !(entry.includes('*') ? this.#isSome(nameList([entry])) : this.#names.has(entry)))
  }

  #replace(uid: string, after: ProjectedModel | undefined): void {
    const before = this.#models.get(uid)
    if (JSON.stringify(before) === JSON.stringify(after)) return
    const hadLack = this.#lacking > 0
    if (before) this.#remove(before)
    if (after) this.#add(after)
    const concerned = union(namespacesOf(before), namespacesOf(after))
    this.#forget(concerned)
    if (hadLack || this.#lacking > 0) this.#notify(concerned)
  }

  #forget(namespaces: ProjectedModel['allowedNamespaces']): void {
    if (namespaces === '*') return this.#callable.clear()
    for (const namespace of namespaces) this.#callable.delete(namespace)
  }

  #isSome(list: ReturnType<typeof nameList>): boolean {
    for (const name of this.#names.names) if (listAdmits(list, name)) return true
    return false
  }

  #notify(namespaces: ProjectedModel['allowedNamespaces']): void {
    for (const listener of this.#listeners) listener(namespaces)
  }

  #add(model: ProjectedModel): void {
    this.#models.set(model.uid, model)
    this.#names.add(model)
    const { namespace } = model
    this.#byNamespace.set(namespace, (this.#byNamespace.get(namespace) ?? new Set()).add(model))
    if (model.openTo !== 'None') this.#open.add(model)
    if (lacksSome(model)) this.#lacking += 1
  }

  #remove(model: ProjectedModel): void {
    this.#models.delete(model.uid)
    this.#names.delete(model)
    this.#open.delete(model)
    const own = this.#byNamespace.get(model.namespace)
    own?.delete(model)
    if (own?.size === 0) this.#byNamespace.delete(model.namespace)
    if (lacksSome(model)) this.#lacking -= 1
  }

  #callableIn(namespace: string): readonly ProjectedModel[] {
    const known = this.#callable.get(namespace)
    if (known) return known
    const candidates = new Set([...(this.#byNamespace.get(namespace) ?? []), ...this.#open])
    const found = [...candidates].filter((model) => model.names.some((name) => this.#names.resolve(namespace, name) === model))
    for (const oldest of this.#callable.keys()) {
      if (this.#callable.size < MAX_REMEMBERED) break
      this.#callable.delete(oldest)
    }
    this.#callable.set(namespace, found)
    return found
  }
}

function lacksSome({ isPriced, isBounded }: ProjectedModel): boolean {
  return !isPriced || !isBounded
}

function projectedModel(record: ModelRecord): ProjectedModel {
  const { servedName, allowedNamespaces, pricing, contextTokens, maxOutputTokens } = record
  return {
    ...namedModel(record),
    servedName,
    allowedNamespaces,
    isPriced: pricing !== undefined,
    isBounded: contextTokens !== undefined || maxOutputTokens !== undefined,
  }
}

function namespacesOf(model: ProjectedModel | undefined): ProjectedModel['allowedNamespaces'] {
  return model === undefined ? [] : union(model.allowedNamespaces, [model.namespace])
}

function union(a: ProjectedModel['allowedNamespaces'], b: ProjectedModel['allowedNamespaces']): ProjectedModel['allowedNamespaces'] {
  return a === '*' || b === '*' ? '*' : [...new Set([...a, ...b])]
}
