/** Turns changed reports of objects into log lines: each change once, and many similar ones in one line. Pure. */
import type { EventText } from '#kube/events.ts'
import { remediedNote } from './remedies.ts'
import { titleOf, type ObjectReport, type Problem } from './object-report.ts'

/** One line of the log. */
export interface StatusLine {
  readonly level: 'info' | 'warn'
  readonly text: string
  readonly fields: LineFields
}

/** The content of a line for programs. A line about one object has its namespace and name, a line about many has their number and names. */
export interface LineFields extends LineFacts {
  readonly kind: string
  readonly namespace?: string
  readonly name?: string
  readonly count?: number
  /** `namespace/name` of at most MOST_NAMES objects. */
  readonly objects?: readonly string[]
}

/** What happened to an object. */
export interface LineFacts {
  /** `Condition`: a problem has begun. `Recovery`: the object is ready, or problems have ended. */
  readonly change: 'Applied' | 'Deleted' | 'Condition' | 'Recovery' | 'Event'
  /** Type and status of the condition, absent where no condition says so. The type of an Event is `Warning`. */
  readonly type?: string
  readonly status?: string
  readonly reason?: string
  /** Cause and remedy. */
  readonly message?: string
  /** Reasons that apply no longer. */
  readonly ended?: readonly string[]
}

/** A changed report. `after` undefined: the object was deleted; `before` undefined: it was not reported yet. */
export interface ReportChange {
  readonly kind: string
  /** `namespace/name` */
  readonly name: string
  readonly before: ObjectReport | undefined
  readonly after: ObjectReport | undefined
}

/** A line about one object, in parts, so that similar lines can be combined. */
export interface LinePart {
  readonly level: StatusLine['level']
  readonly kind: string
  readonly name: string
  /** Equal for all objects with the same change. */
  readonly words: string
  readonly text: string
  readonly facts: LineFacts
}

/** Up to this many objects with the same words and the same text have a line each; more share one. */
const MOST_ALIKE = 3
/** The same for objects with the same words and different texts. */
const MOST_LINES = 10
/** Most names in the fields of a line about many objects. */
const MOST_NAMES = 100

/** @returns the lines, in the order of the changes */
export function linesOf(changes: readonly ReportChange[]): readonly StatusLine[] {
  return alikeLines(changes.flatMap(partsOf))
}

/** @returns a line for each part, or one line for many similar ones */
export function alikeLines(all: readonly LinePart[]): readonly StatusLine[] {
  const alike = Map.groupBy(all, ({ level, kind, words }) => `${level} ${kind} ${words}`)
  return [...alike.values()].flatMap((parts) => {
    const same = [...Map.groupBy(parts, ({ text }) => text).values()]
    const lines = same.flatMap((some) => (some.length > MOST_ALIKE ? [summed(some)] : some.map(single)))
    return lines.length > MOST_LINES ? [summed(parts)] : lines
  })
}

/** One line for a Warning Event of an object. @param name `namespace/name` */
export function eventLine(kind: string, name: string, { type, reason, note }: EventText): StatusLine {
  const text = remediedNote(reason, note)
  return single({ level: 'warn', kind, name, words: reason, text, facts: { change: 'Event', type, reason, message: text } })
}

function single({ level, kind, name, words, text, facts }: LinePart): StatusLine {
  const slash = name.indexOf('/')
  const fields = { kind, namespace: name.slice(0, slash), name: name.slice(slash + 1), ...facts }
  return { level, text: `${titleOf({ kind, name })}: ${words}${text === '' ? '' : `: ${text}`}`, fields }
}

function summed(parts: readonly LinePart[]): StatusLine {
  const [first] = parts
  if (first === undefined) throw new RangeError('a line about no object')
  const { level, kind, words, text, facts } = first
  const names = parts.slice(0, MOST_ALIKE).map(({ name }) => name)
  const which = `${names.join(', ')} and ${parts.length - MOST_ALIKE} more`
  const isSame = parts.every((part) => part.text === text)
  const example = text === '' ? '' : `${isSame ? '' : '; the first'}: ${text}`
  const fields = { kind, count: parts.length, objects: parts.slice(0, MOST_NAMES).map(({ name }) => name), ...facts }
  return { level, text: `${parts.length} ${kind}s: ${words} (${which})${example}`, fields }
}

function partsOf({ kind, name, before, after }: ReportChange): readonly LinePart[] {
  if (after === undefined) return [deleted(kind, name)]
  const known = new Set(before?.problems.map(identityOf))
  const isNew = (problem: Problem): boolean => !known.has(identityOf(problem))
  const begun = after.problems.filter(isNew).map((problem): LinePart => {
    const level = problem.weight === 'Wanted' ? 'info' : 'warn'
    const { headline, reason, text, condition } = problem
    return {
      level,
      kind,
      name,
      words: `${headline} (${reason})`,
      text,
      facts: { change: 'Condition', ...condition, reason, message: text },
    }
  })
  return [...begun, ...ended(before, after)]
}

function identityOf({ headline, reason, text, identity = text }: Problem): string {
  return `${headline} ${reason} ${identity}`
}

function deleted(kind: string, name: string): LinePart {
  const text = kind === 'ApiKey' ? 'the key is revoked, and its Secret is removed' : ''
  return { level: 'info', kind, name, words: 'deleted', text, facts: { change: 'Deleted', ...(text === '' ? {} : { message: text }) } }
}

/** The lines about ended problems. */
function ended(before: ObjectReport | undefined, { kind, name, isReady, problems }: ObjectReport): readonly LinePart[] {
  const line = (words: string, facts: Omit<LineFacts, 'change'>): LinePart => {
    return { level: 'info', kind, name, words, text: '', facts: { change: 'Recovery', ...facts } }
  }
  if (before === undefined) return isReady && problems.length === 0 ? [line('ready', READY)] : []
  const lasting = new Set(problems.map(({ reason }) => reason))
  const over = before.problems.filter(({ reason }) => !lasting.has(reason))
  const unnamed = over.filter((problem) => problem.over === undefined).map(({ reason }) => reason)
  if (!before.isReady && isReady) {
    const words = unnamed.length === 0 ? 'ready' : `ready now (it was ${unnamed.join(', ')})`
    return [line(words, { ...READY, ended: over.map(({ reason }) => reason) })]
  }
  const named = over.flatMap((problem) => (problem.over === undefined ? [] : [line(problem.over, { ended: [problem.reason] })]))
  return [...named, ...(unnamed.length === 0 ? [] : [line(`no longer ${unnamed.join(', ')}`, { ended: unnamed })])]
}

const READY: Pick<LineFacts, 'type' | 'status' | 'reason'> = { type: 'Ready', status: 'True', reason: 'Ready' }
