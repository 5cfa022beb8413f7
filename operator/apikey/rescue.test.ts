import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decodeKeyRecord } from '../../gateway/shared/key-record.ts'
import { type OperatorProcess, OperatorWorld } from '../../test/support/operator-world.ts'
import { apiKeys, secrets } from '../kube/resources.ts'
import { keyRecords, rescue } from './rescue.ts'

const BOT = { namespace: 'shop', name: 'bot' }

describe('what must be on the gateways when a leader takes over', () => {
  let world: OperatorWorld
  let operator: OperatorProcess

  beforeEach(async () => {
    world = new OperatorWorld()
    operator = await world.start()
    await world.apply()
    await operator.settle()
  })
  afterEach(() => operator.stop())

  const states = (): string[] => keyRecords(operator.deps).map(({ text }) => decodeKeyRecord(text ?? '').st)

  test('is the keyring under the policy of the present manifests, also of those that changed meanwhile', async () => {
    expect(states()).toEqual(['Active'])
    await world.apply({ state: 'Suspended' })
    expect(states()).toEqual(['Suspended'])
  })

  test('a key keeps its own policy while its ApiKey is being deleted: nothing is revoked by a restart', async () => {
    await world.apply({ state: 'Suspended' })
    await operator.settle()
    await world.objects.remove(apiKeys, BOT)
    expect(states()).toEqual(['Suspended'])
  })

  test('an ApiKey that was made anew under the same name gives the old key nothing', async () => {
    const [before] = keyRecords(operator.deps)
    await world.objects.patch(apiKeys, BOT, [{ op: 'remove', path: '/metadata/finalizers' }])
    await world.apply({ state: 'Suspended' })
    await world.objects.remove(apiKeys, BOT)
    await world.apply({ models: ['everything'] })
    const [after] = keyRecords(operator.deps)
    expect(after).toEqual(before)
    expect(after?.text).not.toContain('everything')
  })

  test('a deleted key is not among them', async () => {
    await world.objects.remove(apiKeys, BOT)
    await operator.settle()
    expect(keyRecords(operator.deps)).toEqual([])
    expect([...operator.deps.keyring.lines()]).toHaveLength(1)
  })

  describe('of a key that the keyring lost', () => {
    let uid = ''
    let text = ''

    beforeEach(async () => {
      uid = (await world.key()).metadata.uid ?? ''
      text = (await world.memory.record((await world.memory.meta())?.epoch ?? '', 'key', uid)) ?? ''
      await operator.deps.keyring.forget(uid)
    })

    test('the record is kept, and the line made again, with an Event', async () => {
      const kept = await rescue(uid, text, operator.deps)
      expect(decodeKeyRecord(kept ?? '')).toEqual({ ...decodeKeyRecord(text), rev: 0 })
      expect(operator.deps.keyring.get(uid)).toMatchObject({ ver: [{ state: 'Issued', prefix: (await world.key()).status?.prefix }] })
      expect(world.events.at(-1)?.reason).toBe('KeyringRestored')
    })

    test('the manifest decides on its policy, not the record', async () => {
      await world.apply({ state: 'Suspended', models: ['a'] })
      expect(decodeKeyRecord((await rescue(uid, text, operator.deps)) ?? '')).toMatchObject({ st: 'Suspended', models: [['a']] })
    })

    test('without a status the Secret may vouch for it', async () => {
      await world.objects.applyStatus(apiKeys, { ...(await world.key()), status: {} })
      expect(await rescue(uid, text, operator.deps)).toBeDefined()
    })

    test('nobody vouches for it without status and Secret: then it goes', async () => {
      await world.objects.applyStatus(apiKeys, { ...(await world.key()), status: {} })
      await world.objects.remove(secrets, BOT)
      expect(await rescue(uid, text, operator.deps)).toBeUndefined()
    })

    test('a record of another key, or one that cannot be read, is no proof', async () => {
      const { id = '' } = decodeKeyRecord(text).ver[0] ?? {}
      expect(await rescue(uid, text.replace(id, '0000000000'), operator.deps)).toBeUndefined()
      expect(await rescue(uid, '{"v":2}', operator.deps)).toBeUndefined()
      expect(operator.deps.keyring.get(uid)).toBeUndefined()
    })

    test('an ApiKey that is gone, or going, does not get it back', async () => {
      expect(await rescue('another uid', text, operator.deps)).toBeUndefined()
      await world.objects.remove(apiKeys, BOT)
      expect(await rescue(uid, text, operator.deps)).toBeUndefined()
    })
  })

  test('a key that the keyring has is no matter of rescue', async () => {
    const uid = (await world.key()).metadata.uid ?? ''
    expect(await rescue(uid, keyRecords(operator.deps)[0]?.text ?? '', operator.deps)).toBeUndefined()
  })
})
