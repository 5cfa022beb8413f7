/** Decides whether a key may use a model. Pure. Answers are cached, because a key uses the same few models again and again. */
import type { KeyRecord } from '#contract/records/key-record.ts'

/** All lists must admit a model. */
type Scoped = Pick<KeyRecord, 'models'>

/** An allow-list that is prepared for many names. An entry is a name, `*`, or a name with `*` at one end. */
interface NameList {
  readonly all: boolean
  readonly exact: ReadonlySet<string>
  readonly prefixes: readonly string[]
  readonly suffixes: readonly string[]
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

/** Prepares the entries of an allow-list. */
export function nameList(entries: readonly string[]): NameList {
  const wild = entries.filter((entry) => entry !== '*' && entry.includes('*'))
  return {
    all: entries.includes('*'),
    exact: new Set(entries.filter((entry) => !entry.includes('*'))),
    prefixes: wild.filter((entry) => entry.indexOf('*') === entry.length - 1).map((entry) => entry.slice(0, -1)),
    suffixes: wild.filter((entry) => entry.lastIndexOf('*') === 0).map((entry) => entry.slice(1)),
  }
}

/** Whether an entry admits the name. */
export function listAdmits(list: NameList, name: string): boolean {
  return (
    list.all ||
    list.exact.has(name) ||
    list.prefixes.some((prefix) => name.startsWith(prefix)) ||
    list.suffixes.some((suffix) => name.endsWith(suffix))
  )
}
