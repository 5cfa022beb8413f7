import { beforeEach, describe, expect, test } from 'vitest'
import { hashCredential, mintCredential, type Credential } from '#contract/values/credential.ts'
import { decodeKeyRecord } from '#contract/records/key-record.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'
import { FakeKubePort } from '../../../test/support/fake-kube-port.ts'
import { FaultyProjectionStore } from '../../../test/support/faulty-projection-store.ts'
import { ManualClock, settle } from '../../../test/support/manual-clock.ts'
import { apiKey, SHOP } from '../../../test/support/objects.ts'
import { openedKeyring } from '../../../test/support/opened-keyring.ts'
import { writer } from '../../../test/support/records.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import type { Keyring } from '../../shards/keyring.ts'
import { addUidIndex } from '#kube/indexes.ts'
import { KubeError, uidOf } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { entryOf, recordText } from './keyring-entry.ts'
import { recoverEntries, type Recovery, startRecords } from './start-records.ts'
import { userSecret } from './user-secret.ts'

const URL = 'https://models.example'
const BOT = { namespace: SHOP, name: 'bot' }

let objects: ObjectStore
/** The API server as the recovery reads it. */
let kube: FakeKubePort
let store: FaultyProjectionStore
let clock: ManualClock
let keyring: Keyring
let events: string[]
let credential: Credential
let id: string

const deps = () => ({
  keyring,
  kube,
  apiKeys: objects.informer<ApiKey>(apiKeys),
  accounts: { ofKey: () => undefined },
  recordEvent: (_object: unknown, reason: string, note: string) => void events.push(`${reason}: ${note}`),
  clock,
  version: () => 1,
  settings: { publicURL: URL },
})
const recover = (): Promise<Recovery> => recoverEntries(deps().apiKeys.list(), deps(), store)
const key = async (): Promise<ApiKey> => {
  const found = await objects.get(apiKeys, BOT)
  if (!found) throw new Error('no ApiKey')
  return found
}
const entry = async () => keyring.pending(uidOf(await key())) ?? keyring.get(uidOf(await key()))

/** The record that gateways use. */
async function project(spec: Partial<ApiKey['spec']> = {}): Promise<void> {
  const present = await key()
  const verifier = { id, hash: hashCredential(credential), expiresMs: null, number: 1, state: 'Issued' as const, createdMs: 0, prefix: '' }
  const text = recordText(
    entryOf({ ...present, spec: { ...present.spec, ...spec } }, { verifiers: [verifier], revision: 1, version: 1 }),
    1,
  )
  await store.memory.rebuild(writer(), 'epoch', 1, [{ kind: 'key', op: 'put', id: uidOf(present), text: text ?? '' }])
}

async function deliver(): Promise<void> {
  await objects.create(secrets, userSecret(await key(), credential, URL, { id, number: 1 }))
}

async function report(): Promise<void> {
  const status = { keyID: id, prefix: 'sk-hg1Ab…wxyz', verifiers: [{ id, createTime: '2025-12-01T00:00:00Z' }] }
  await objects.applyStatus(apiKeys, { ...(await key()), status } as ApiKey)
}

beforeEach(async () => {
  clock = new ManualClock()
  objects = new ObjectStore({ now: () => clock.now() })
  kube = new FakeKubePort(objects)
  store = new FaultyProjectionStore()
  ;({ credential, id } = mintCredential())
  events = []
  addUidIndex(objects.informer<ApiKey>(apiKeys))
  await objects.create(apiKeys, apiKey('bot', { models: ['llama'] }, { finalizers: [FINALIZER] }))
  keyring = await openedKeyring(objects, clock)
})

describe('an entry that the keyring lost', () => {
  test('is restored from the record of the gateways, without a read of a Secret, if the status names the same key', async () => {
    await project()
    await report()
    expect(await recover()).toEqual({ restored: [uidOf(await key())], open: new Set(), isRedisRead: true })
    expect(await entry()).toMatchObject({
      state: 'Active',
      models: [['llama']],
      verifiers: [{ id, hash: hashCredential(credential), state: 'Issued', prefix: 'sk-hg1Ab…wxyz', createdMs: Date.UTC(2025, 11, 1) }],
    })
    expect(events).toEqual(['KeyringRestored: The keyring had lost the key; it was restored from Redis. The key works on.'])
    expect(kube.calls).toEqual([])
  })

  test('gets its policy from the manifest, not from the record', async () => {
    await project({ state: 'Suspended', models: ['everything'] })
    await report()
    await recover()
    expect(await entry()).toMatchObject({ state: 'Active', models: [['llama']] })
  })

  test('is restored from its Secret while Redis does not answer', async () => {
    await report()
    await deliver()
    store.stop()
    expect(await recover()).toEqual({ restored: [uidOf(await key())], open: new Set(), isRedisRead: false })
    expect(await entry()).toMatchObject({ verifiers: [{ id, hash: hashCredential(credential), state: 'Issued' }] })
    expect(events[0]).toContain('restored from its Secret')
  })

  test('without a status is restored if record and Secret agree, as after a crash between delivery and status', async () => {
    await project()
    await deliver()
    expect((await recover()).restored).toHaveLength(1)
  })

  test.each<[string, () => Promise<void>]>([
    ['neither status nor Secret name it', () => project()],
    ['only its Secret names it: a user who may write Secrets could choose the value of a key', () => deliver()],
    [
      'the status names another key than the Secret',
      async () => {
        await deliver()
        await objects.applyStatus(apiKeys, { ...(await key()), status: { keyID: '0000000000' } } as ApiKey)
      },
    ],
    [
      'its ApiKey is being deleted',
      async () => {
        await project()
        await report()
        await objects.remove(apiKeys, BOT)
      },
    ],
    [
      'nothing was ever minted: the finalizer is not there',
      async () => {
        await project()
        await report()
        await objects.patch(apiKeys, BOT, [{ op: 'remove', path: '/metadata/finalizers' }])
      },
    ],
  ])('is not restored when %s', async (_what, prepare) => {
    await prepare()
    expect(await recover()).toEqual({ restored: [], open: new Set(), isRedisRead: true })
    expect(await entry()).toBeUndefined()
    expect(events).toEqual([])
  })

  test.each(['{"v":2}', 'damaged', '{}'])('is not restored from an unreadable record: %s', async (text) => {
    await report()
    store.records = async (_epoch, _kind, ids) => new Map(ids.map((uid) => [uid, text]))
    await project()
    expect((await recover()).restored).toEqual([])
  })

  test('stays open if its Secret cannot be read now, so that its record stays', async () => {
    await report()
    kube.before = () => Promise.reject(new KubeError('Forbidden', 403, 'no'))
    expect(await recover()).toEqual({ restored: [], open: new Set([uidOf(await key())]), isRedisRead: true })
  })

  test('is among the records of the start before it is durable, so that no valid key is refused', async () => {
    await project()
    await report()
    await recover()
    expect(keyring.state(uidOf(await key()))).toBe('Pending')
    const records = await startRecords(deps(), () => false)
    expect(records.map(({ id: uid, text }) => [uid, decodeKeyRecord(text ?? '').state])).toEqual([[uidOf(await key()), 'Active']])
  })

  test('is durable soon after the start', async () => {
    await project()
    await report()
    await recover()
    await keyring.flush()
    expect(keyring.get(uidOf(await key()))).toMatchObject({ verifiers: [{ id }] })
  })
})

test('a present entry stays unchanged', async () => {
  await project()
  await report()
  await recover()
  await keyring.flush()
  events = []
  expect(await recover()).toEqual({ restored: [], open: new Set(), isRedisRead: true })
  await settle()
  expect(events).toEqual([])
})

test('Secrets are read for at most ten seconds; the other keys are recovered one by one, and their records stay', async () => {
  await report()
  for (let index = 0; index < 40; index += 1) {
    const created = await objects.create(apiKeys, apiKey(`bot-${index}`, {}, { finalizers: [FINALIZER] }))
    await objects.applyStatus(apiKeys, { ...created, status: { keyID: 'known' } } as ApiKey)
  }
  kube.before = () => clock.advance(11_000)
  const { open } = await recover()
  expect(open.size).toBe(41 - 32) // 32 concurrent reads
})
