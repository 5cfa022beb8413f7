/** IANA time zones of budget windows. */

/** Form of a name such as `Europe/Berlin` or `UTC`; offsets such as `+01:00` are no names. */
export const TIME_ZONE_NAME = '^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$'

/** Names that were asked for are few; a user who invents names must not fill the memory. */
const MAX_REMEMBERED = 1_000
const known = new Map<string, boolean>()

/** @returns whether the time zone database of this program has a zone of that name */
export function isTimeZone(name: string): boolean {
  const answer = known.get(name)
  if (answer !== undefined) return answer
  const found = new RegExp(TIME_ZONE_NAME).test(name) && isInDatabase(name)
  if (known.size >= MAX_REMEMBERED) known.clear()
  known.set(name, found)
  return found
}

function isInDatabase(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}
