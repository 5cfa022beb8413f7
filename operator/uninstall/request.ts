/** Encodes the messages between the uninstall command and the leader, as annotations of the Lease. Pure. */

/** Set by the command: `<id> <ms since 1970>`. */
export const REQUEST_ANNOTATION = 'headgate.dev/uninstall'
/** Set by the leader when it has released every ApiKey: `<id> <released> <failed>`. */
export const RESULT_ANNOTATION = 'headgate.dev/uninstalled'
/** Longest age of a request, ms. An older request is of an abandoned uninstall; the clocks of two machines may differ by minutes. */
const VALID_FOR_MS = 600_000

export interface UninstallRequest {
  readonly id: string
  readonly atMs: number
}

export interface UninstallResult {
  readonly id: string
  readonly released: number
  readonly failed: number
}

export function encodeRequest({ id, atMs }: UninstallRequest): string {
  return `${id} ${atMs}`
}

/** @returns undefined if there is no request, or if the request is too old */
export function readRequest(annotations: Readonly<Record<string, string>>, nowMs: number): UninstallRequest | undefined {
  const [id = '', at = ''] = annotations[REQUEST_ANNOTATION]?.split(' ') ?? []
  const atMs = Number(at)
  const isRecent = id !== '' && Number.isFinite(atMs) && Math.abs(nowMs - atMs) < VALID_FOR_MS
  return isRecent ? { id, atMs } : undefined
}

export function encodeResult({ id, released, failed }: UninstallResult): string {
  return `${id} ${released} ${failed}`
}

/** @returns the result of this request; undefined until the leader has written it */
export function readResult(annotations: Readonly<Record<string, string>>, requestID: string): UninstallResult | undefined {
  const [id = '', released = '', failed = ''] = annotations[RESULT_ANNOTATION]?.split(' ') ?? []
  return id === requestID ? { id, released: Number(released), failed: Number(failed) } : undefined
}
