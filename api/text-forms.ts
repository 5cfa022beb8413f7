/** Messages for the patterns of the schemas. No message shows a regular expression. */
import { TIME_ZONE_NAME } from '#contract/values/budget-window.ts'
import { DNS_LABEL, MODEL_NAME, MODEL_PATTERN } from '#contract/values/name-patterns.ts'
import { HINT, SHA256_HEX } from './apikey.ts'
import { DECIMAL_AMOUNT } from './decimal-amount.ts'
import type { ManifestError } from './manifest-error.ts'
import { DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE } from './metadata.ts'

/** Why a text is wrong, and how to correct it. `reason` continues the value: `"a b" is …`. */
export type TextForm = Omit<ManifestError, 'field'>

const MODEL_CHARACTERS = 'letters, digits and . _ : / @ + -, beginning with a letter or a digit'

const FORMS: Readonly<Record<string, (value: string) => TextForm>> = {
  [MODEL_PATTERN]: (value) =>
    /^\*.*\*$|.\*./s.test(value)
      ? { reason: 'has * inside or at both ends', remedy: 'write * at one end only, as in "qwen-*" or "*-mini"' }
      : { reason: 'is not a model name', remedy: `use ${MODEL_CHARACTERS}, and * at one end for many models` },
  [MODEL_NAME]: () => ({ reason: 'is not a model name', remedy: `use ${MODEL_CHARACTERS}` }),
  [DNS_SUBDOMAIN]: (value) => ({
    reason: 'is not a valid name',
    remedy: `use lower-case letters, digits, "-" and ".", with a letter or a digit at both ends${example(value, /[^a-z0-9.-]+/g)}`,
  }),
  [DNS_LABEL]: (value) => ({
    reason: 'is not a valid name',
    remedy: `use lower-case letters, digits and "-", with a letter or a digit at both ends${example(value, /[^a-z0-9-]+/g)}`,
  }),
  [LABEL_KEY]: () => ({
    reason: 'is not a label key',
    remedy: 'write [prefix/]name: letters, digits, "-", "_" and ".", at most 63 after the prefix, which is a DNS name',
  }),
  [LABEL_VALUE]: () => ({
    reason: 'is not a label value',
    remedy: 'use letters, digits, "-", "_" and ".", with a letter or a digit at both ends',
  }),
  [DECIMAL_AMOUNT]: () => ({
    reason: 'is no decimal number of at most 9 digits before and 6 behind the point',
    remedy: 'write it like "0.15", without sign, exponent or separators',
  }),
  [SHA256_HEX]: (value) =>
    value.startsWith('sk-')
      ? {
          reason: 'is the key itself',
          remedy: 'write its SHA-256, and replace the key: everybody who can read this ApiKey may have seen it',
        }
      : { reason: 'is not a SHA-256', remedy: 'write 64 lower-case hexadecimal digits, as sha256sum prints them' },
  [HINT]: () => ({ reason: 'has a control character', remedy: 'remove the character' }),
  [TIME_ZONE_NAME]: () => ({ reason: 'is no name of a time zone', remedy: 'write an IANA name such as Europe/Berlin or UTC' }),
}
const BY_PATTERN = new Map(Object.entries(FORMS).map(([pattern, words]) => [String(new RegExp(pattern)), words]))

/** @returns reason and remedy for a text that does not match; undefined for an unknown pattern. @param pattern as zod reports it */
export function patternForm(pattern: string, value: string): TextForm | undefined {
  return BY_PATTERN.get(pattern)?.(value)
}

/** @returns reason and remedy for a text that is not an RFC 3339 time */
export function timeForm(value: string): TextForm {
  const [, date] = /^(\d{4}-\d{2}-\d{2})$/.exec(value) ?? []
  if (date !== undefined) return { reason: 'is a date without a time', remedy: `write a time, such as "${date}T00:00:00Z"` }
  const [, time] = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?)$/.exec(value) ?? []
  if (time !== undefined) return { reason: 'is a time without a time zone', remedy: `append Z for UTC or an offset, as in "${time}Z"` }
  const isWhole = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/.test(value)
  if (isWhole) return { reason: 'is a time that does not exist', remedy: 'correct the day, the hour or the offset' }
  return { reason: 'is not a time', remedy: 'write it like "2027-01-01T00:00:00Z"' }
}

/** A valid name that is similar to the invalid one, as an example; '' if there is none. */
function example(value: string, refused: RegExp): string {
  const name = value
    .toLowerCase()
    .replaceAll(refused, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
    .replaceAll(/-?\.-?/g, '.')
  return name === '' || name === value || name.length > 63 ? '' : `, for example "${name}"`
}
