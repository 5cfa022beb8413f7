/**
 * What a person has typed and not yet saved, kept in the tab: a session that ends, or a sign-in in between, loses nothing. Forms with a
 * password or a code keep no draft.
 */

export interface Drafts {
  /** The draft of a form by the names of its fields. @param person id of the person: another one in this tab never sees the draft */
  read(person: string, form: string): Readonly<Record<string, string>>
  /** Keeps the values, or forgets the draft if they are empty. */
  keep(person: string, form: string, values: Readonly<Record<string, string>>): void
  /** Forgets the drafts of everybody, at sign-out. */
  forget(): void
}

const PREFIX = 'headgate.draft.'

export function createDrafts(storage: Storage | undefined): Drafts {
  const key = (person: string, form: string): string => `${PREFIX}${person}.${form}`
  return {
    read: (person, form) => parsed(attempt(() => storage?.getItem(key(person, form)) ?? null) ?? null),
    keep(person, form, values) {
      attempt(() => {
        if (Object.keys(values).length === 0) storage?.removeItem(key(person, form))
        else storage?.setItem(key(person, form), JSON.stringify(values))
      })
    },
    forget() {
      attempt(() => {
        const names = Array.from({ length: storage?.length ?? 0 }, (_, index) => storage?.key(index) ?? '')
        for (const name of names) if (name.startsWith(PREFIX)) storage?.removeItem(name)
      })
    },
  }
}

/** A browser may refuse storage, or have no room: then there are no drafts. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}

function parsed(text: string | null): Readonly<Record<string, string>> {
  const values: unknown = attempt(() => JSON.parse(text ?? '{}'))
  if (typeof values !== 'object' || values === null) return {}
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}
