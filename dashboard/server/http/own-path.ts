/** Paths of our own pages that a URL or a form may name as the place to go on. Anything else would lead people to other sites. */

/** @returns the path with its query; undefined for all that is not a path of a page */
export function ownPath(next: unknown): string | undefined {
  if (typeof next !== 'string' || !/^\/(?![/\\])[\w\-./?=&%~]{0,512}$/.test(next)) return undefined
  const { pathname, search } = new URL(next, 'http://dashboard.invalid')
  return pathname.startsWith('/api/') || pathname.startsWith('//') ? undefined : `${pathname}${search}`
}
