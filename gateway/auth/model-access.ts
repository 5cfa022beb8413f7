/** Decides whether a key may use a model. Pure. Answers are cached, because a key uses the same few models again and again. */
import { listAdmits, type NameList, nameList } from '#contract/values/name-list.ts'

/** The part of a KeyRecord that matters here. */
export interface Scoped {
  /** All lists must admit a model. An entry is a name, `*`, or a name with `*` at one end. */
  readonly models: readonly (readonly string[])[]
}

interface Scope {
  readonly lists: readonly NameList[]
  /** By the requested name, and by the array of all names of a model, which stays the same object until the model changes. */
  readonly ofName: Map<string, boolean>
  readonly ofModel: Map<readonly string[], boolean>
}

// clients choose the names, so the memory for them is bounded
const MAX_ANSWERS = 256
const MAX_REMEMBERED_CHARACTERS = 1024

/** One per `models` array, not per record: keys that share the array share the compiled form. */
const scopes = new WeakMap<Scoped['models'], Scope>()

/**
 * Whether the key may use the model.
 * @param names the served name and the aliases of the model, or the requested name where no model has it. Each list must admit one of them
 */
export function admits(record: Scoped, names: readonly string[]): boolean {
  const scope = scopeOf(record.models)
  const [name] = names
  const isModel = names.length > 1 || name === undefined
  const known = isModel ? scope.ofModel.get(names) : scope.ofName.get(name)
  if (known !== undefined) return known
  const answer = scope.lists.every((list) => names.some((one) => listAdmits(list, one)))
  if (isModel) remember(scope.ofModel, names, answer)
  else if (name.length <= MAX_REMEMBERED_CHARACTERS) remember(scope.ofName, name, answer)
  return answer
}

function remember<K>(answers: Map<K, boolean>, question: K, answer: boolean): void {
  if (answers.size >= MAX_ANSWERS) answers.clear()
  answers.set(question, answer)
}

function scopeOf(models: Scoped['models']): Scope {
  const known = scopes.get(models)
  if (known) return known
  const made: Scope = { lists: models.map(nameList), ofName: new Map(), ofModel: new Map() }
  scopes.set(models, made)
  return made
}
