import { pino } from 'pino'
import { beforeEach, expect, test } from 'vitest'
import { ObjectStore } from '../standalone/object-store.ts'
import { FakeKubePort } from '../test/support/fake-kube-port.ts'
import { ManualClock } from '../test/support/manual-clock.ts'
import { packShard } from '../test/support/pack-shard.ts'
import { SHARDS_LABEL } from '#contract/records/mounted-folder.ts'
import { LeaderLease } from '#kube/leader.ts'
import { KubeError } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { leadIfAble, type PassLeaseDeps } from './pass-lease.ts'

const times = { durationMs: 15_000, renewMs: 10_000, retryMs: 2_000 }
const READABLE = '{"v":1,"rev":1,"uid":"a"}'
let clock: ManualClock
let store: ObjectStore
let lines: string[]

beforeEach(() => {
  clock = new ManualClock()
  store = new ObjectStore()
  lines = []
  reading.clear()
})

/** A keyring with these entries. */
async function keyring(...texts: readonly string[]): Promise<void> {
  const packed = await packShard({ shards: 1, shard: 0 }, texts)
  const metadata = { name: 'hg-keyring-1-0', namespace: 'headgate', labels: { [SHARDS_LABEL]: 'keyring' } }
  await store.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data: { records: packed.toString('base64') } })
}

interface Candidate {
  readonly lease: LeaderLease
  readonly port: FakeKubePort
  readonly isDone: () => boolean
}

/** Candidates that read the keyring: unpacking takes real time, during which the clock of the test must stand still. */
const reading = new Set<string>()

/** Starts a candidate. @param canRead false: of a version that cannot read the keyring of the test; true: it sees another, readable one */
function candidate(name: string, canRead = false): Candidate {
  const port = new FakeKubePort(store)
  const options = { clock, logger: pino({ level: 'silent' }), random: () => 0.5, namespace: 'headgate', times, onLost: () => undefined }
  const lease = new LeaderLease({ ...options, kube: port, identity: name })
  const log = { warn: (line: unknown) => void lines.push(`${name}: ${String(line)}`) }
  let isDone = false
  const kube: PassLeaseDeps['kube'] = {
    list: (...asked) => {
      reading.add(name)
      return canRead ? Promise.resolve([]) : port.list(...asked)
    },
  }
  void leadIfAble({ lease: observed(lease, name), kube, namespace: 'headgate', clock, log, retryMs: times.retryMs }).then(() => {
    isDone = true
    reading.delete(name)
  })
  return { lease, port, isDone: () => isDone }
}

/** The lease of a candidate. A candidate that passes the lease on has read the keyring. */
function observed(lease: LeaderLease, name: string): PassLeaseDeps['lease'] {
  return {
    acquire: () => lease.acquire(),
    annotate: (annotations) => {
      reading.delete(name)
      return lease.annotate(annotations)
    },
    stepDown: () => lease.stepDown(),
    get annotations() {
      return lease.annotations
    },
    get fence() {
      return lease.fence
    },
    get leading() {
      return lease.leading
    },
  }
}

/** Lets time pass on the clock of the test, and never while a candidate reads. */
async function pass(seconds: number): Promise<void> {
  for (let at = 0; at < seconds * 2; at += 1) {
    await clock.advance(500)
    do await new Promise((resolve) => setImmediate(resolve))
    while (reading.size > 0)
  }
}

test.each([
  ['an entry of a later version', '{"v":2,"rev":1,"uid":"b"}'],
  ['an entry that needs a feature of a later version', '{"v":1,"needs":["of a later version"],"rev":1,"uid":"b"}'],
])('a leader that finds %s hands the Lease to a candidate that can read it', async (_, text) => {
  await keyring(READABLE, text)
  const old = candidate('old')
  await clock.advance(0)
  const newer = candidate('newer', true)
  await pass(30)
  expect([old.lease.leading, newer.lease.leading, newer.isDone(), old.isDone()]).toEqual([false, true, true, false])
  expect(lines).toEqual([expect.stringContaining('old: the keyring has entries that this version cannot read')])
})

test('without another candidate it leads on after two passes, and renews the Lease', async () => {
  await keyring('{"v":2,"rev":1,"uid":"b"}')
  const old = candidate('old')
  await pass(60)
  expect([old.lease.leading, old.isDone(), lines.length]).toEqual([true, true, 2])
})

test('one candidate of three is found, although two cannot read', async () => {
  await keyring('{"v":2,"rev":1,"uid":"b"}')
  const [old, older] = [candidate('old'), candidate('older')]
  const newer = candidate('newer', true)
  await pass(60)
  expect([old.isDone() || older.isDone(), newer.lease.leading]).toEqual([false, true])
})

test('a leader of a readable or damaged keyring leads at once', async () => {
  await keyring(READABLE, 'damaged')
  const one = candidate('one')
  await pass(1)
  expect([one.isDone(), one.lease.leading, lines]).toEqual([true, true, []])
})

test('a leader that cannot read the Secrets, or cannot write the Lease, leads on', async () => {
  await keyring('{"v":2,"rev":1,"uid":"b"}')
  const one = candidate('one')
  one.port.before = ({ verb }) => {
    if (verb === 'update') throw new KubeError('Unreachable', 0, 'no answer')
  }
  await pass(2)
  expect([one.isDone(), lines]).toEqual([true, ['one: the Lease could not be handed on (no answer)']])
})
