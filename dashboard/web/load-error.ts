/** Which error a page shows in place of what it reads. Pure. */
import { Unreachable } from './api.ts'

/**
 * The error of a query, unless older data stands there and nothing answers: then the page-wide banner says so once for all.
 * @returns undefined: nothing to show
 */
export function loadErrorOf({ data, error }: { readonly data: unknown; readonly error: Error | null }): Error | undefined {
  return error === null || (data !== undefined && error instanceof Unreachable) ? undefined : error
}
