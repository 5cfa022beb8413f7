/** Log lines about objects. Many similar ones share one line. */
import type { Log } from '#platform/log.ts'

/** What happened to one object. */
export interface ObjectLine {
  readonly level: 'info' | 'warn'
  readonly kind: string
  /** `namespace/name`, or the name of an object of the cluster. */
  readonly name: string
  /** Equal for all objects with the same change. */
  readonly words: string
  /** The words of a line about many objects, where those of one object do not fit. */
  readonly manyWords?: string
  /** Cause and remedy. */
  readonly text?: string
  readonly facts: LineFacts
}

/** The content of a line for programs: what of a condition or an Event it is about, and the reasons that apply no longer. */
export interface LineFacts extends Partial<Readonly<Record<'type' | 'status' | 'reason' | 'message', string>>> {
  /** `Condition`: a problem has begun. `Recovery`: the object is ready, or problems have ended. */
  readonly change: 'Applied' | 'Deleted' | 'Condition' | 'Recovery' | 'Event'
  readonly ended?: readonly string[]
}

/** Up to this many objects with the same words and the same text have a line each. */
const MAX_ALIKE = 3
/** The same for objects with the same words and different texts. */
const MAX_LINES = 10
/** Maximum number of names in the fields of a line about many objects. */
const MAX_NAMES = 100

/** Logs a line for each object, or one line for many similar ones: with their number, three names and the first text. */
export function logLines(log: Log, lines: readonly ObjectLine[]): void {
  for (const alike of Map.groupBy(lines, ({ level, kind, words }) => `${level} ${kind} ${words}`).values()) {
    const isSame = new Set(alike.map(({ text }) => text)).size === 1
    if (alike.length > (isSame ? MAX_ALIKE : MAX_LINES)) logMany(log, alike, isSame)
    else for (const line of alike) logOne(log, line)
  }
}

function logOne(log: Log, { level, kind, name: path, words, text, facts }: ObjectLine): void {
  const [name, namespace] = path.split('/').toReversed() // an object of the cluster has no namespace
  log[level]({ kind, namespace, name, ...facts }, `${kind} ${path}: ${words}${text === undefined ? '' : `: ${text}`}`)
}

function logMany(log: Log, lines: readonly ObjectLine[], isSame: boolean): void {
  const [first] = lines
  if (first === undefined) return
  const { level, kind, words, manyWords = words, text, facts } = first
  const names = lines.map(({ name }) => name)
  const which = `${names.slice(0, MAX_ALIKE).join(', ')} and ${lines.length - MAX_ALIKE} more`
  const example = text === undefined ? '' : `${isSame ? '' : '; the first'}: ${text}`
  const fields = { kind, count: lines.length, objects: names.slice(0, MAX_NAMES), ...facts }
  log[level](fields, `${lines.length} ${kind}s: ${manyWords} (${which})${example}`)
}
