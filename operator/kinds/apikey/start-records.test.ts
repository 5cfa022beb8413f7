import { beforeEach, describe, expect, test } from 'vitest'
import { decodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'
import { apiKey } from '../../../test/support/objects.ts'
import { edited, entryFor, issued, verifierOf } from '../../../test/support/observed-key.ts'
import { openedKeyring } from '../../../test/support/opened-keyring.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import type { Keyring } from '../../shards/keyring.ts'
import { addUidIndex } from '#kube/indexes.ts'
import { newestEntries, startRecords } from './start-records.ts'

describe('the records of a new leader', () => {
  let objects: ObjectStore
  let keyring: Keyring
  let key: ApiKey

  beforeEach(async () => {
    objects = new ObjectStore()
    addUidIndex(objects.informer<ApiKey>(apiKeys))
    keyring = await openedKeyring(objects)
    key = await objects.create(apiKeys, apiKey('bot', { models: ['a'] }, { finalizers: [FINALIZER] }))
    await commit(entryFor(key, [verifierOf(1)]))
  })

  async function commit(entry: KeyringEntry): Promise<void> {
    keyring.commit(entry, 'change')
    await keyring.flush()
  }

  async function edit(spec: Partial<ApiKey['spec']>): Promise<void> {
    key = await objects.update(apiKeys, { ...key, spec: { ...key.spec, ...spec } })
  }

  async function records(exists: (entry: KeyringEntry) => boolean = () => false): Promise<KeyRecord[]> {
    const changes = await startRecords(
      { keyring, apiKeys: objects.informer<ApiKey>(apiKeys), accounts: { ofKey: () => undefined }, version: () => 1 },
      exists,
    )
    expect(changes.every(({ kind, op }) => kind === 'key' && op === 'put')).toBe(true)
    return changes.map(({ text = '' }) => decodeKeyRecord(text))
  }

  test('are the keyring entries with the policy of the present manifests, including manifests that changed since', async () => {
    expect(await records()).toMatchObject([{ state: 'Active', models: [['a']] }])
    await edit({ state: 'Suspended', models: ['b'] })
    expect(await records()).toMatchObject([{ state: 'Suspended', models: [['b']], generation: 2 }])
  })

  test('are the entries themselves if the cache is older, so that no suspension is lifted', async () => {
    await commit(entryFor(edited(issued(key), { state: 'Suspended' }).apiKey, [verifierOf(1)]))
    expect(await records()).toMatchObject([{ state: 'Suspended', generation: 2 }])
  })

  test('are complete even if recovered entries become durable during the iteration', async () => {
    for (const name of ['first', 'second']) {
      const recovered = await objects.create(apiKeys, apiKey(name, {}, { finalizers: [FINALIZER] }))
      keyring.commit(entryFor(recovered, [verifierOf(1)]), 'change')
    }
    const names: string[] = []
    for (const { name } of newestEntries({ keyring, apiKeys: objects.informer<ApiKey>(apiKeys) })) {
      names.push(name)
      if (name === 'first') await keyring.flush()
    }
    expect(names).toEqual(['bot', 'first', 'second'])
  })

  test('have the pending entry rather than the durable entry', async () => {
    keyring.commit({ ...entryFor(key, []), name: 'bot' }, 'urgent')
    expect(await records()).toMatchObject([{ verifiers: [] }])
  })
})
