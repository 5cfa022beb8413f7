/** What the uninstall command and the running leader say to each other, as annotations of the Lease. Pure. */

/** Set by the command: `<id> <ms since 1970>`. */
export const REQUEST_ANNOTATION = 'headgate.dev/uninstall'
/** Set by the leader when it has let go of everything: `<id> <released> <failed>`. */
export const RESULT_ANNOTATION = 'headgate.dev/uninstalled'
/** An older request belongs to an uninstall that was given up; the clocks of two machines may differ by minutes. */
const VALID_FOR_MS = 600_000

/** One request. */
export interface UninstallRequest {
  readonly id: string
  readonly atMs: number
}

/** What became of it. */
export interface UninstallResult {
  readonly id: string
  readonly released: number
  readonly failed: number
}

export function encodeRequest({ id, atMs }: UninstallRequest): string {
  return `${id} ${atMs}`
}

/** @returns undefined when there is no request, or only one that is too old */
export function readRequest(annotations: Readonly<Record<string, string>>, nowMs: number): UninstallRequest | undefined {
  const [id = '', at = ''] = annotations[REQUEST_ANNOTATION]?.split(' ') ?? []
  const atMs = Number(at)
  const isRecent = id !== '' && Number.isFinite(atMs) && Math.abs(nowMs - atMs) < VALID_FOR_MS
  return isRecent ? { id, atMs } : undefined
}

export function encodeResult({ id, released, failed }: UninstallResult): string {
  return `${id} ${released} ${failed}`
}

/** @returns the result of this very request, if the leader has written it */
export function readResult(annotations: Readonly<Record<string, string>>, requestID: string): UninstallResult | undefined {
  const [id = '', released = '', failed = ''] = annotations[RESULT_ANNOTATION]?.split(' ') ?? []
  return id === requestID ? { id, released: Number(released), failed: Number(failed) } : undefined
}
