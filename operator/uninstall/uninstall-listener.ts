/**
 * The leader's part of an uninstall: stops the operator, releases every ApiKey, and writes the result to the Lease. The command and the leader
 * send their messages as annotations of the Lease.
 */
import { messageOf } from '#platform/message-of.ts'
import { type Clock, sleep } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Operator } from '../app.ts'
import type { Released, ReleaseProgress } from '../kinds/release.ts'
import type { AnnotationPatch, LeaderLease } from '#kube/leader.ts'

/** Set by the command: `<id> <ms since 1970>`. */
export const REQUEST_ANNOTATION = 'headgate.dev/uninstall'
/** Set by the leader when it has released every ApiKey: `<id> <released> <failed>`. */
export const RESULT_ANNOTATION = 'headgate.dev/uninstalled'
/** Set by the leader while it releases them: `<id> <done> <total>`. */
export const PROGRESS_ANNOTATION = 'headgate.dev/uninstalling'
/** Removes all that an uninstall writes to the Lease: otherwise a new installation would serve the request. */
export const NO_REQUEST: AnnotationPatch = { [REQUEST_ANNOTATION]: null, [RESULT_ANNOTATION]: null, [PROGRESS_ANNOTATION]: null }
/** The command writes its request again this often, ms, and so shows that it still runs. */
export const ASK_AGAIN_MS = 20_000
/** Time after the last request from which the uninstall counts as cancelled, ms. Helm deletes the operator within seconds after the command. */
const CANCELLED_AFTER_MS = 120_000
/** Shortest time between two writes of progress, ms. */
const PROGRESS_EVERY_MS = 2_000
/**
 * Longest age of a request that a leader finds when it begins to lead, ms. An older request is of an abandoned uninstall; the clocks of two machines
 * may differ by minutes. One that appears later was just written, whatever its time.
 */
const VALID_FOR_MS = 600_000

type Annotations = Readonly<Record<string, string>>

export function encodeRequest(id: string, atMs: number): string {
  return `${id} ${atMs}`
}

/** @returns the id of the request; undefined if there is no request, or if it is too old @param nowMs undefined: of any age */
export function readRequest(annotations: Annotations, nowMs: number | undefined): string | undefined {
  const [id = '', atMs = ''] = annotations[REQUEST_ANNOTATION]?.split(' ') ?? []
  const ageMs = atMs === '' ? NaN : Math.abs((nowMs ?? Number(atMs)) - Number(atMs))
  return id !== '' && ageMs < VALID_FOR_MS ? id : undefined
}

export function encodeResult(id: string, { released, failed }: Released): string {
  return `${id} ${released} ${failed}`
}

/** @returns the result of this request; undefined until the leader has written it */
export function readResult(annotations: Annotations, requestID: string): Released | undefined {
  const [id, released, failed] = annotations[RESULT_ANNOTATION]?.split(' ') ?? []
  return id === requestID ? { released: Number(released), failed: Number(failed) } : undefined
}

function encodeProgress(id: string, { done, total }: ReleaseProgress): string {
  return `${id} ${done} ${total}`
}

/** @returns how far this request has come; undefined until the leader has begun */
export function readProgress(annotations: Annotations, requestID: string): ReleaseProgress | undefined {
  const [id, done, total] = annotations[PROGRESS_ANNOTATION]?.split(' ') ?? []
  return id === requestID ? { done: Number(done), total: Number(total) } : undefined
}

export interface UninstallListenerDeps {
  readonly lease: Pick<LeaderLease, 'onAnnotations' | 'annotate'>
  readonly operator: Pick<Operator, 'release'>
  readonly clock: Clock
  readonly log: Log
  /** Called when every object is released: from now on the loss of the Lease is no reason to end, since `--purge` deletes the Lease. */
  readonly onReleased: () => void
  /** Ends this process, so that the next one works again. */
  readonly end: (why: string) => void
}

/**
 * Serves the requests that this leader finds on the Lease. The operator has stopped for good then, so the process ends if it could not release
 * the objects, or if it still runs long after the command has ended: the uninstall was cancelled.
 */
export function serveUninstalls(deps: UninstallListenerDeps): void {
  const { lease, clock, log, onReleased, end } = deps
  let isServing = false
  let asked: { readonly text: string | undefined; readonly atMs: number } = { text: undefined, atMs: 0 }
  const endWhenCancelled = async (): Promise<void> => {
    const leftMs = (): number => asked.atMs + CANCELLED_AFTER_MS - clock.monotonic()
    while (leftMs() > 0) await sleep(clock, leftMs())
    end('the uninstall was cancelled: the command ended long ago, and this operator is still there; it starts again')
  }
  const start = async (id: string): Promise<void> => {
    isServing = true
    const isReleased = await serve(id, deps)
    isServing = false
    if (!isReleased) return end('the uninstall was not finished; the next leader tries again')
    onReleased()
    await endWhenCancelled()
  }
  let known: { readonly text: string | undefined } | undefined
  lease.onAnnotations((annotations) => {
    const text = annotations[REQUEST_ANNOTATION]
    known ??= { text }
    if (text !== asked.text) asked = { text, atMs: clock.monotonic() }
    const id = readRequest(annotations, text === known.text ? clock.now() : undefined)
    if (id !== undefined && readResult(annotations, id) === undefined && !isServing) void start(id)
    if (id === undefined && text !== undefined) lease.annotate(NO_REQUEST).catch((error: unknown) => log.warn(messageOf(error)))
  })
}

/** @returns false if the objects could not be released */
async function serve(id: string, { operator, lease, clock, log }: UninstallListenerDeps): Promise<boolean> {
  log.info('Headgate is being uninstalled: this operator stops and releases every ApiKey')
  try {
    const { released, failed } = await operator.release(reporter(id, { lease, clock }))
    log.info({ released, failed }, 'ApiKeys were released')
    await lease.annotate({ [RESULT_ANNOTATION]: encodeResult(id, { released, failed }) })
    return true
  } catch (error) {
    log.error(`the uninstall was not finished (${messageOf(error)})`)
    return false
  }
}

/** Writes progress to the Lease at a bounded rate. A failed write is of no importance: the next one says more. */
function reporter(id: string, { lease, clock }: Pick<UninstallListenerDeps, 'lease' | 'clock'>): (progress: ReleaseProgress) => void {
  let writtenAtMs = -Infinity
  return (progress) => {
    const nowMs = clock.monotonic()
    if (nowMs - writtenAtMs < PROGRESS_EVERY_MS) return
    writtenAtMs = nowMs
    lease.annotate({ [PROGRESS_ANNOTATION]: encodeProgress(id, progress) }).catch(() => undefined)
  }
}
