/** Whether a key may use a model. Pure; answers are remembered, since a key asks for the same few models again and again. */

/** The part of a KeyRecord that decides. */
export interface Scoped {
  /** All lists must admit a model; an entry is a name, `*`, or a name with `*` at one end. */
  readonly models: readonly (readonly string[])[]
}

interface Scope {
  readonly lists: readonly NameList[]
  /** By the one name asked for, and by all names of a model; apart, since a client may send any text as one name. */
  readonly ofName: Map<string, boolean>
  readonly ofModel: Map<string, boolean>
}

interface NameList {
  readonly all: boolean
  readonly exact: ReadonlySet<string>
  readonly prefixes: readonly string[]
  readonly suffixes: readonly string[]
}

// names come from clients: the memory for them must not grow with what they invent
const MAX_ANSWERS = 256
const MAX_REMEMBERED_CHARACTERS = 1024

/** Per list of lists, not per record: keys that share their lists share the compiled form. */
const scopes = new WeakMap<Scoped['models'], Scope>()

/**
 * Whether the key is allowed to use the model.
 * @param names served name and aliases of the model, or the one name as sent where no model has it; each list must admit one of them
 */
export function admits(record: Scoped, names: readonly string[]): boolean {
  const scope = scopeOf(record.models)
  const answers = names.length === 1 ? scope.ofName : scope.ofModel
  const question = names.length === 1 ? (names[0] ?? '') : names.join('\n')
  const known = answers.get(question)
  if (known !== undefined) return known
  const answer = scope.lists.every((list) => names.some((name) => listAdmits(list, name)))
  if (answers.size >= MAX_ANSWERS) answers.clear()
  if (question.length <= MAX_REMEMBERED_CHARACTERS) answers.set(question, answer)
  return answer
}

function scopeOf(models: Scoped['models']): Scope {
  const known = scopes.get(models)
  if (known) return known
  const made: Scope = { lists: models.map(compile), ofName: new Map(), ofModel: new Map() }
  scopes.set(models, made)
  return made
}

function compile(entries: readonly string[]): NameList {
  const wild = entries.filter((entry) => entry !== '*' && entry.includes('*'))
  return {
    all: entries.includes('*'),
    exact: new Set(entries.filter((entry) => !entry.includes('*'))),
    prefixes: wild.filter((entry) => entry.indexOf('*') === entry.length - 1).map((entry) => entry.slice(0, -1)),
    suffixes: wild.filter((entry) => entry.lastIndexOf('*') === 0).map((entry) => entry.slice(1)),
  }
}

function listAdmits(list: NameList, name: string): boolean {
  return (
    list.all ||
    list.exact.has(name) ||
    list.prefixes.some((prefix) => name.startsWith(prefix)) ||
    list.suffixes.some((suffix) => name.endsWith(suffix))
  )
}
