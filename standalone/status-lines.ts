/** Turns changed reports of objects into log lines: each change once, and many similar ones in one line. Pure. */
import { remediedNote } from './remedies.ts'
import { titleOf, type ObjectReport, type Problem } from './object-report.ts'

/** One line of the log. */
export interface StatusLine {
  readonly level: 'info' | 'warn'
  readonly text: string
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
}

/** Up to this many objects with the same words and the same text have a line each; more share one. */
const MOST_ALIKE = 3
/** The same for objects with the same words and different texts. */
const MOST_LINES = 10

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

/** One line for an Event of an object. */
export function eventLine(title: string, reason: string, note: string): string {
  return `${title}: ${reason}: ${remediedNote(reason, note)}`
}

function single({ level, kind, name, words, text }: LinePart): StatusLine {
  return { level, text: `${titleOf({ kind, name })}: ${words}${text === '' ? '' : `: ${text}`}` }
}

function summed(parts: readonly LinePart[]): StatusLine {
  const [{ level, kind, words, text } = { level: 'info', kind: '', words: '', text: '' } as const] = parts
  const names = parts.slice(0, MOST_ALIKE).map(({ name }) => name)
  const which = `${names.join(', ')} and ${parts.length - MOST_ALIKE} more`
  const isSame = parts.every((part) => part.text === text)
  const example = text === '' ? '' : `${isSame ? '' : '; the first'}: ${text}`
  return { level, text: `${parts.length} ${kind}s: ${words} (${which})${example}` }
}

function partsOf({ kind, name, before, after }: ReportChange): readonly LinePart[] {
  if (after === undefined) return [deleted(kind, name)]
  const known = new Set(before?.problems.map(identityOf))
  const isNew = (problem: Problem): boolean => !known.has(identityOf(problem))
  const begun = after.problems.filter(isNew).map((problem): LinePart => {
    const level = problem.weight === 'Wanted' ? 'info' : 'warn'
    return { level, kind, name, words: `${problem.headline} (${problem.reason})`, text: problem.text }
  })
  return [...begun, ...ended(before, after)]
}

function identityOf({ headline, reason, text, identity = text }: Problem): string {
  return `${headline} ${reason} ${identity}`
}

function deleted(kind: string, name: string): LinePart {
  const text = kind === 'ApiKey' ? 'the key is revoked, and its Secret is removed' : ''
  return { level: 'info', kind, name, words: 'deleted', text }
}

/** The lines about ended problems. */
function ended(before: ObjectReport | undefined, { kind, name, isReady, problems }: ObjectReport): readonly LinePart[] {
  const well = (words: string): LinePart => ({ level: 'info', kind, name, words, text: '' })
  if (before === undefined) return isReady && problems.length === 0 ? [well('ready')] : []
  const lasting = new Set(problems.map(({ reason }) => reason))
  const over = before.problems.filter(({ reason }) => !lasting.has(reason))
  const unnamed = over.filter((problem) => problem.over === undefined).map(({ reason }) => reason)
  const words = over.flatMap((problem) => problem.over ?? [])
  if (!before.isReady && isReady) return [well(unnamed.length === 0 ? 'ready' : `ready now (it was ${unnamed.join(', ')})`)]
  return [...words, ...(unnamed.length === 0 ? [] : [`no longer ${unnamed.join(', ')}`])].map(well)
}
