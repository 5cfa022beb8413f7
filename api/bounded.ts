/**
 * Parts of the schemas whose limits zod and the API server would otherwise count differently. Each part sets the keyword of the CRD (`meta`
 * is copied into the generated schema unchanged) and checks the same limit in zod.
 */
import { z } from 'zod'
import { shownText } from './manifest-error.ts'

/** Maximum number of entries of any map in a spec. */
const MAX_MAP_ENTRIES = 16

/**
 * Free text. Its length is counted in Unicode code points, as in the API server. zod's own `max` counts UTF-16 units: with a limit of 63 it
 * would refuse 40 emoji, which a cluster accepts.
 */
export function text(maxLength: number): z.ZodString {
  return z
    .string()
    .refine((value) => Array.from(value).length <= maxLength, { error: `has more than ${maxLength} characters` })
    .meta({ maxLength })
}

/** Text that a pattern describes. */
export function matching(pattern: string, maxLength: number): z.ZodString {
  return z.string().regex(new RegExp(pattern)).max(maxLength)
}

/** A whole number. */
export function whole(min: number, max: number): z.ZodInt {
  return z.int().min(min).max(max)
}

/** A map of at most 16 entries. */
export function boundedMap<V extends z.ZodType>(value: V): z.ZodRecord<z.ZodString, V> {
  return z
    .record(z.string(), value)
    .refine((map) => Object.keys(map).length <= MAX_MAP_ENTRIES, { error: `has more than ${MAX_MAP_ENTRIES} entries` })
    .meta({ maxProperties: MAX_MAP_ENTRIES })
}

interface ListSize {
  readonly min?: number
  readonly max: number
}

function listOf<V extends z.ZodType>(item: V, { min = 0, max }: ListSize): z.ZodArray<V> {
  return z.array(item).min(min).max(max)
}

/** A list without repetition. Server-side apply merges it entry by entry. */
export function setOf<V extends z.ZodType<string>>(item: V, size: ListSize): z.ZodArray<V> {
  return listOf(item, size)
    .check(noRepetition((value) => value))
    .meta({ 'x-kubernetes-list-type': 'set' })
}

/**
 * A list that is one value: server-side apply replaces the whole list. For allow-lists, since the entries that an
 * owner applies must be the only allowed ones, and for long lists, since the API server would store the owner of each entry of a set.
 */
export function wholeListOf<V extends z.ZodType<string>>(item: V, size: ListSize): z.ZodArray<V> {
  return listOf(item, size).meta({ 'x-kubernetes-list-type': 'atomic' })
}

/** A list whose entries are identified by one of their fields. Server-side apply merges it entry by entry. */
export function mapOf<K extends string, V extends z.ZodType<Readonly<Record<K, string>>>>(item: V, key: K, size: ListSize): z.ZodArray<V> {
  return listOf(item, size)
    .check(noRepetition((value) => value[key]))
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] })
}

/** RFC 3339, seconds required, with `Z` or an offset. The generator writes the short pattern below into the CRD. */
export function timestamp(): z.ZodISODateTime {
  return z.iso.datetime({ offset: true }).max(40)
}

/** Form of a time. Whether the day exists is checked by `format: date-time` in a cluster and by zod here. */
export const TIMESTAMP_PATTERN = '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$'

function noRepetition<V>(identity: (value: V) => string): z.core.CheckFn<readonly V[]> {
  return ({ value, issues }) => {
    const seen = new Set<string>()
    for (const [index, entry] of value.entries()) {
      const id = identity(entry)
      if (seen.has(id)) issues.push({ code: 'custom', path: [index], input: value, message: `repeats ${shownText(id) ?? 'another entry'}` })
      seen.add(id)
    }
  }
}
