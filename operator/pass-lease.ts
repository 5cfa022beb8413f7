/**
 * A leader with keyring entries that only another version can read is of little use: edits of their keys stay without effect. During an upgrade
 * or a rollback another candidate may be able to read them, so such a leader hands the Lease on before it begins to work. Candidates do not
 * know each other. So if those that follow cannot read the entries either, one of them leads after two passes (decision 43).
 */
import { type Clock, sleep } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { RECORDS_KEY, SHARDS_LABEL } from '#contract/records/mounted-folder.ts'
import { parseFormat, UnknownVersion } from '#contract/records/format.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import type { LeaderLease } from '#kube/leader.ts'
import type { KubePort } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { KEYRING_SET } from './shards/sets.ts'
import { inTurns } from './loop/in-parallel.ts'

/** `<fence of the leader that passed> <number of passes in a row>` */
const PASSED_ANNOTATION = 'headgate.dev/passed'
const MAX_PASSES = 2
/**
 * Time that other candidates have, in retry times. Each of them tries once per retry time, at most a fifth later. After a first candidate that
 * cannot read either, a second one must be able to try before this process does.
 */
const HEAD_START = 2.5
/** Maximum number of entries that are read without a pause for other work. */
const TURN = 500

export interface PassLeaseDeps {
  readonly lease: Pick<LeaderLease, 'acquire' | 'annotate' | 'annotations' | 'fence' | 'leading' | 'stepDown'>
  readonly kube: Pick<KubePort, 'list'>
  readonly namespace: string
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
  /** Time between two tries of a candidate, ms. */
  readonly retryMs: number
}

/** Waits until this process leads, and can read the keyring or has found no other candidate. Returns without leading only after a release. */
export async function leadIfAble(deps: PassLeaseDeps): Promise<void> {
  const { lease, clock, retryMs } = deps
  await lease.acquire()
  while (lease.leading && (await passes(deps))) {
    await sleep(clock, HEAD_START * retryMs)
    await lease.acquire()
  }
}

/** @returns whether the Lease was handed back. Nothing fails here: a leader that cannot tell leads on */
async function passes({ lease, kube, namespace, log }: PassLeaseDeps): Promise<boolean> {
  const former = passesBefore(lease)
  if (former >= MAX_PASSES) return false
  try {
    if (await canRead(await kube.list(secrets, namespace, `${SHARDS_LABEL}=${KEYRING_SET.set}`))) return false
    await lease.annotate({ [PASSED_ANNOTATION]: `${lease.fence} ${former + 1}` })
    log.warn('the keyring has entries that this version cannot read; the Lease goes to another operator, if there is one')
    await lease.stepDown()
    return true
  } catch (error) {
    log.warn(`the Lease could not be handed on (${messageOf(error)})`)
    return false
  }
}

/** Passes of the leaders directly before this one. */
function passesBefore({ annotations, fence }: Pick<LeaderLease, 'annotations' | 'fence'>): number {
  const [former, count = 0] = (annotations[PASSED_ANNOTATION] ?? '').split(' ').map(Number)
  return former === fence - 1 ? count : 0
}

/** Whether no shard and no entry is of another version. Damage does not count: no version reads it. */
async function canRead(shards: readonly Secret[]): Promise<boolean> {
  let isForeign = false
  const look = (read: () => unknown): void => {
    try {
      read()
    } catch (error) {
      isForeign ||= error instanceof UnknownVersion
    }
  }
  for (const { data } of shards) {
    const [shard] = await Promise.allSettled([unpackShard(Buffer.from(data?.[RECORDS_KEY] ?? '', 'base64'))])
    if (shard.status === 'rejected') isForeign ||= shard.reason instanceof UnknownVersion
    else await inTurns(shard.value, TURN, (text) => look(() => parseFormat(text)))
    if (isForeign) return false
  }
  return true
}
