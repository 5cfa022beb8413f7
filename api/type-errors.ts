/** Messages for a value of the wrong type: its type, the expected type, and how to write a correct value. */
import type { TextForm } from './text-forms.ts'
import { typeOf } from './shown-value.ts'

/** A value whose type is not the one that the schema expects. */
export interface WrongType {
  /** The expected type, as zod names it. */
  readonly expected: string
  readonly value: unknown
  /** The value as text; undefined if it must not be shown. */
  readonly shown: string | undefined
  /** Name of the field. */
  readonly field: string
  /** Names of the fields, if an object is expected. */
  readonly fields: readonly string[]
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** @returns reason and remedy; the reason begins with the value if it may be shown */
export function typeError(wrong: WrongType): TextForm {
  const { expected, value } = wrong
  if (expected === 'array') return listExpected(wrong)
  if (expected === 'object' || expected === 'record') return objectExpected(wrong)
  if (expected === 'string') return textExpected(wrong)
  if (expected === 'int' || expected === 'number') return numberExpected(wrong)
  return { reason: `is ${typeOf(value)}, not ${expected}`, remedy: 'change the value' }
}

function listExpected({ value, shown }: WrongType): TextForm {
  const items = shown === undefined ? 'a list: one entry per line, each after "- "' : `a list: [${shown}]`
  return { reason: `${subject(shown)}is ${typeOf(value)}, not a list`, remedy: `write ${items}` }
}

/** The value is not shown: users sometimes write a token instead of an object. */
function objectExpected({ value, fields }: WrongType): TextForm {
  const remedy = fields.length === 0 ? 'write its entries as "key: value" below it' : `write an object with the fields ${fields.join(', ')}`
  return { reason: `is ${typeOf(value)}, not an object`, remedy }
}

function textExpected({ value, shown }: WrongType): TextForm {
  const isScalar = typeof value === 'number' || typeof value === 'boolean'
  const remedy = isScalar ? `write it in quotes${shown === undefined ? '' : `: "${shown}"`}` : 'write a text'
  return { reason: `${subject(shown)}is ${typeOf(value)}, not text`, remedy }
}

function numberExpected({ value, shown, field }: WrongType): TextForm {
  if (typeof value === 'number') return { reason: `${subject(shown)}is not a whole number`, remedy: 'write a number without a fraction' }
  const text = typeof value === 'string' ? value.trim() : ''
  if (/^-?\d{1,15}$/.test(text)) return { reason: `${subject(shown)}is text, not a number`, remedy: `remove the quotes: ${Number(text)}` }
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const factor = SECONDS[unit]
  if (count !== undefined && factor !== undefined && field.endsWith('Seconds'))
    return { reason: `${subject(shown)}is text, not a number`, remedy: `write the seconds: ${Number(count) * factor}` }
  return { reason: `${subject(shown)}is ${typeOf(value)}, not a number`, remedy: 'write a whole number' }
}

function subject(shown: string | undefined): string {
  return shown === undefined ? '' : `${shown} `
}
