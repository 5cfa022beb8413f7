/** Times as Python and PostgreSQL write them. Pure. */
import { rfc3339 } from '#contract/values/rfc3339.ts'

const TIME = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?\s*(Z|[+-]\d{2}(?::?\d{2})?)?$/

/**
 * @param text a time; one without an offset is UTC, as LiteLLM writes it
 * @returns RFC 3339 in whole seconds, rounded down; undefined if it is not a time
 */
export function timeOf(text: string): string | undefined {
  const [, day, time, , zone = 'Z'] = TIME.exec(text.trim()) ?? []
  if (day === undefined || time === undefined) return undefined
  const offset = zone === 'Z' ? 'Z' : `${zone.slice(0, 3)}:${zone.slice(3).replace(':', '') || '00'}`
  const ms = Date.parse(`${day}T${time}${offset}`)
  return Number.isNaN(ms) ? undefined : rfc3339(ms)
}
