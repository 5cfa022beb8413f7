import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type AccountRecord, decodeAccountRecord } from '#contract/records/account-record.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { decodePlanRecord, type PlanRecord } from '#contract/records/plan-record.ts'
import { FakeLedgerStore } from '../../../test/support/fake-ledger-store.ts'
import { account, namespace, plan, SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { accounts, apiKeys, plans } from '#api/resources.ts'
import { KubeError, refOf, uidOf } from '#kube/port.ts'
import { namespaces, secrets } from '#kube/resources.ts'
import { MARK_ANNOTATION, REOPEN_ANNOTATION } from '../../accounts/claim.ts'
import { ACCOUNTS_SET } from '../../shards/sets.ts'

type AccountSpec = NonNullable<Parameters<typeof account>[1]>

const ACME = { namespace: '', name: 'acme' }
const DAY_MS = 86_400_000
const PRO = { namespace: '', name: 'pro' }

describe('an Account and its keys', () => {
  let world: OperatorWorld

  beforeEach(async () => {
    world = new OperatorWorld()
    await world.apply(namespaces, namespace(SHOP))
    await world.apply(namespaces, namespace('other'))
    await world.start()
  })
  afterEach(() => world.stop())

  const applyPlan = (spec: Parameters<typeof plan>[1] = {}) => world.apply(plans, plan('pro', spec))
  const applyAccount = (spec: AccountSpec = {}, metadata: Parameters<typeof account>[2] = {}) =>
    world.apply(accounts, account('acme', spec, metadata))
  const accountRecords = async (): Promise<AccountRecord[]> => (await world.texts('account')).map(decodeAccountRecord)
  const planRecords = async (): Promise<PlanRecord[]> => (await world.texts('plan')).map(decodePlanRecord)
  const keyRecord = async (name = 'bot'): Promise<KeyRecord | undefined> =>
    (await world.keyRecords()).find((record) => record.name === name)
  const accepted = (name = 'bot') => world.condition(apiKeys, name, 'Accepted')
  const ready = (name = 'bot') => world.condition(apiKeys, name, 'Ready')
  const settledKey = (name = 'bot', spec: Parameters<typeof world.applyKey>[0] = {}, inNamespace = SHOP) =>
    world.settledKey({ accountRef: { name: 'acme' }, ...spec }, name, inNamespace)
  /** A plan, an account and one issued key. */
  const issued = async (planSpec: Parameters<typeof plan>[1] = {}, spec: AccountSpec = {}): Promise<string> => {
    await applyPlan(planSpec)
    await applyAccount(spec)
    await world.settle()
    return await settledKey()
  }
  const live = async () => (await world.objects.get(accounts, ACME))!
  const edit = async (spec: AccountSpec): Promise<void> => {
    await applyAccount(spec)
    await world.settle()
  }

  /** The durable records of accounts and plans. */
  const durable = async (): Promise<string> => {
    const shards = await Promise.all((await world.shards('accounts')).map(({ data }) => ACCOUNTS_SET.codec(() => 1).decode(data ?? {})))
    return shards.flatMap(({ entries }) => entries.map(({ text }) => text)).join('\n')
  }

  /** What the gateways had of accounts after each write. */
  const recordsOverTime = (): Set<string> => {
    const seen = new Set<string>()
    world.afterCall = async ({ verb }) => {
      if (verb !== 'write' && verb !== 'rebuild') return
      const [record] = await accountRecords()
      seen.add(record === undefined ? 'None' : `${record.state} ${record.plan === null ? 'without' : 'with'} a plan`)
    }
    return seen
  }

  test('are Ready: the key names the account by its uid, and the account names its plan', async () => {
    expect(await issued()).toMatch(/^sk-/)
    const [record] = await accountRecords()
    expect(record).toMatchObject({ name: 'acme', state: 'Active', plan: (await planRecords())[0]?.uid })
    expect(await keyRecord()).toMatchObject({ account: record?.uid, state: 'Active' })
    expect([await ready(), await world.condition(accounts, 'acme', 'Ready'), await world.condition(plans, 'pro', 'Ready')]).toEqual([
      'True Ready',
      'True Ready',
      'True Ready',
    ])
    expect((await live()).status).toMatchObject({ keyCount: 1, activeKeyCount: 1, programmed: { ready: 2, total: 2 } })
  })

  test('the order of creation does not matter', async () => {
    await world.applyKey({ accountRef: { name: 'acme' } })
    await world.settle()
    expect(await accepted()).toBe('False AccountNotFound')
    await applyAccount()
    await world.settle()
    expect(await accepted()).toBe('False PlanNotFound')
    expect(await world.condition(accounts, 'acme', 'Accepted')).toBe('False PlanNotFound')
    expect(await keyRecord()).toBeUndefined()
    await applyPlan()
    await world.settle()
    expect(await ready()).toBe('True Ready')
  })

  test('a suspension is one record and one revision; lifted, the same value works', async () => {
    const value = await issued()
    const former = await keyRecord()
    await edit({ state: 'Suspended' })
    expect(await accountRecords()).toMatchObject([{ state: 'Suspended' }])
    expect(await keyRecord()).toEqual(former)
    expect([await ready(), await world.condition(accounts, 'acme', 'Ready')]).toEqual(['False AccountSuspended', 'False Suspended'])
    await edit({ state: 'Active' })
    expect([await ready(), await world.value()]).toEqual(['True Ready', value])
  })

  test('an edit of a plan is one record: the keys keep theirs', async () => {
    await issued({ models: ['a', 'b'] })
    const former = await keyRecord()
    await applyPlan({ models: ['a'], perKey: { limits: { ceiling: { requestsPerMinute: 5 } } } })
    await world.settle()
    expect(await planRecords()).toMatchObject([{ models: ['a'], keyCeiling: { requestsPerMinute: 5 } }])
    expect(await keyRecord()).toEqual(former)
    expect((await world.key()).status?.effective).toEqual({ limits: [{ limit: 'requestsPerMinute', value: 5, owner: 'plan' }] })
  })

  test('an edit of the models of a plan writes no status of a key', async () => {
    await issued({ models: ['a', 'b'] })
    world.writes.length = 0
    await applyPlan({ models: ['a'] })
    await world.settle()
    expect(await planRecords()).toMatchObject([{ models: ['a'] }])
    expect(world.writes.filter((write) => write.includes('apikeys'))).toEqual([])
  })

  test('a namespace that the account does not admit gets the answer of a missing account', async () => {
    await applyPlan()
    await applyAccount()
    await settledKey('bot', {}, 'other')
    await settledKey('stray', { accountRef: { name: 'nobody' } }, 'other')
    const message = async (name: string) =>
      (await world.key(name, 'other')).status?.conditions?.find(({ type }) => type === 'Accepted')?.message
    expect(await message('bot')).toContain('There is no Account acme that admits this namespace.')
    expect((await message('bot'))?.replace('acme', 'nobody')).toBe(await message('stray'))
    expect(await world.keyRecords()).toEqual([])
  })

  test('a namespace that is admitted no more stops its keys, and the same values work when it is admitted again', async () => {
    const value = await issued()
    await edit({ namespaces: { matchLabels: { team: 'none' } } })
    expect(await keyRecord()).toMatchObject({ state: 'Suspended' })
    expect(await accepted()).toBe('False NamespaceNotAllowed')
    await edit({})
    expect([await ready(), await world.value(), (await keyRecord())?.state]).toEqual(['True Ready', value, 'Active'])
  })

  test('labels of a namespace decide, as soon as they change', async () => {
    await issued({}, { namespaces: { matchLabels: { team: 'a' } } })
    expect(await accepted()).toBe('False AccountNotFound')
    await world.apply(namespaces, namespace(SHOP, { team: 'a' }))
    await world.settle()
    expect(await ready()).toBe('True Ready')
    await world.apply(namespaces, namespace(SHOP, { team: 'b' }))
    await world.settle()
    expect(await keyRecord()).toMatchObject({ state: 'Suspended' })
  })

  test('while an address waits for its verification, new keys are not issued, and others go on', async () => {
    await issued()
    await edit({ owner: { email: 'a@example.com', emailVerification: 'Pending' } })
    await settledKey('second')
    expect([await ready('bot'), await accepted('second')]).toEqual(['True Ready', 'False EmailNotVerified'])
    await edit({ owner: { email: 'a@example.com', emailVerification: 'Verified' } })
    expect(await ready('second')).toBe('True Ready')
  })

  test('keys beyond maxKeys wait, the oldest first, and an issued key keeps its place', async () => {
    await issued({ maxKeys: 2 })
    await settledKey('second')
    await settledKey('third')
    await world.pass(1)
    await settledKey('fourth')
    expect([await ready('second'), await accepted('third'), await accepted('fourth')]).toEqual([
      'True Ready',
      'False TooManyKeys',
      'False TooManyKeys',
    ])
    expect(await world.condition(accounts, 'acme', 'KeyLimitReached')).toBe('True KeyLimitReached')
    await applyPlan({ maxKeys: 1 })
    await world.settle()
    expect([await ready('bot'), await ready('second')]).toEqual(['True Ready', 'True Ready'])
    await applyPlan({ maxKeys: 2 })
    await world.applyKey({ accountRef: { name: 'acme' }, state: 'Revoked' }, 'second')
    await world.settle()
    expect([await ready('third'), await accepted('fourth')]).toEqual(['True Ready', 'False TooManyKeys'])
  })

  test('a key that has not expired by the time of the store keeps its place under a leader whose clock is days ahead', async () => {
    const { now, clock } = world
    const began = clock.monotonic()
    world.ledger = new FakeLedgerStore(() => now - began + clock.monotonic())
    await world.restart()
    await applyPlan({ maxKeys: 1 })
    await applyAccount()
    await settledKey('bot', { expirationTime: new Date(now + DAY_MS).toISOString() })
    world.now += 3 * DAY_MS
    await world.restart()
    await settledKey('second')
    expect(await accepted('second')).toBe('False TooManyKeys')
    await world.pass(60)
    await world.settle()
    expect((await live()).status).toMatchObject({ activeKeyCount: 1 })
    await world.pass((DAY_MS / 1_000) * 2)
    await world.settle()
    expect(await ready('second')).toBe('True Ready')
    expect((await live()).status).toMatchObject({ activeKeyCount: 1 })
  })

  test('the status shows what all keys share, and whose it is', async () => {
    const budget = { name: 'month', unit: 'Currency', window: 'Month', timeZone: 'UTC', amount: '5', onExceeded: 'Block' } as const
    await issued({ perAccount: { limits: { requestsPerMinute: 9 } } }, { limits: { tokensPerMinute: 80 }, budgets: [budget] })
    expect((await live()).status?.effective).toEqual({
      limits: [
        { limit: 'requestsPerMinute', value: 9, owner: 'plan' },
        { limit: 'tokensPerMinute', value: 80, owner: 'account' },
      ],
      budgets: [{ budget: 'month', owner: 'account' }],
    })
  })

  test('revoked keys count too, up to twice as many as the plan allows and twenty', async () => {
    await issued({ maxKeys: 1 })
    for (let at = 0; at < 21; at += 1) {
      await settledKey(at === 0 ? 'bot' : `bot-${at}`, { state: 'Revoked' })
      await settledKey(`bot-${at + 1}`)
      expect(await accepted(`bot-${at + 1}`)).toBe('True Accepted')
    }
    await settledKey('bot-21', { state: 'Revoked' })
    await settledKey('bot-22')
    expect(await accepted('bot-22')).toBe('False TooManyKeys')
    expect(await world.message(apiKeys, 'bot-22', 'Accepted')).toContain('22 keys together with those that are revoked')
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await world.settle()
    await world.pass(61)
    await world.settle()
    expect(await accepted('bot-22')).toBe('True Accepted')
  })

  test('without accounts in this installation, a key with one says so', async () => {
    await world.restart({ hasAccounts: false })
    await settledKey()
    expect(await accepted()).toBe('False AccountNotFound')
    expect(await world.message(apiKeys, 'bot', 'Accepted')).toContain('accounts.enabled')
  })

  test('the plan bounds how long a key works when the key is accepted, and never later', async () => {
    await issued({ perKey: { ttlSeconds: { default: 3600, ceiling: 7200 } } })
    const created = Date.parse((await world.key()).metadata.creationTimestamp ?? '')
    expect((await keyRecord())?.expiresMs).toBe(created + 3_600_000)
    await applyPlan({ perKey: { ttlSeconds: { default: 60, ceiling: 60 } } })
    await world.settle()
    expect((await keyRecord())?.expiresMs).toBe(created + 3_600_000)
    await world.applyKey({ accountRef: { name: 'acme' }, ttlSeconds: 600 })
    await world.settle()
    expect((await keyRecord())?.expiresMs).toBe(created + 60_000)
  })

  test('a deleted Plan goes on to hold, and no new key is issued', async () => {
    await issued({ models: ['a'] })
    await world.objects.remove(plans, PRO)
    await settledKey('second')
    expect([await ready('bot'), await accepted('second')]).toEqual(['True Ready', 'False PlanNotFound'])
    expect(await world.condition(accounts, 'acme', 'Accepted')).toBe('False PlanNotFound')
    await world.restart()
    expect(await planRecords()).toMatchObject([{ models: ['a'] }])
    await applyPlan({ models: ['b'] })
    await world.settle()
    expect(await planRecords()).toMatchObject([{ models: ['b'] }])
    expect([await ready('second'), await world.condition(accounts, 'acme', 'Accepted')]).toEqual(['True Ready', 'True Accepted'])
  })

  test('a Plan that is deleted while the record of its new Account waits for its Secret goes on to hold', async () => {
    await applyPlan({ models: ['a'] })
    await world.settle()
    world.beforeCall = ({ name }) => (name.startsWith('hg-accounts-') ? world.sleep(30_000) : undefined)
    await applyAccount()
    for (let at = 0; at < 500 && (await accountRecords()).length === 0; at += 1) await world.pass(0.01)
    expect(await accountRecords()).toMatchObject([{ state: 'Active' }]) // gateways have the record
    await world.objects.remove(plans, PRO)
    await world.settle()
    expect(await planRecords()).toMatchObject([{ models: ['a'] }])
  })

  test('the keys of a deleted Account are refused, also if it was deleted while no operator ran', async () => {
    await issued()
    await world.stopProcesses()
    await world.objects.remove(accounts, ACME)
    await world.start()
    expect(await accountRecords()).toMatchObject([{ state: 'Deleted' }])
    expect([await ready(), await accepted()]).toEqual(['False NotAccepted', 'False AccountNotFound'])
  })

  test('an Account that a list of the API server lacks at a takeover is not refused for a moment', async () => {
    await issued()
    await world.stopProcesses()
    const states = recordsOverTime()
    const list = world.objects.list.bind(world.objects)
    world.objects.list = (resource, ...scope) => (resource.plural === 'accounts' ? Promise.resolve([]) : list(resource, ...scope))
    world.launch()
    world.watches.miss(accounts, await live())
    await world.settle()
    expect([...states].filter((text) => text !== 'Active with a plan')).toEqual([])
    expect(await accountRecords()).toMatchObject([{ state: 'Active' }])
  })

  test('a deleted Account stays refused when a standby takes over that has missed the deletion', async () => {
    await issued()
    world.freezeWatch('Standbys', 'accounts')
    await world.objects.remove(accounts, ACME)
    await world.settle()
    const states = recordsOverTime()
    await world.restart()
    expect([...states].filter((text) => !text.startsWith('Deleted'))).toEqual([])
    world.thawWatch()
    await world.settle()
    expect(await accountRecords()).toMatchObject([{ state: 'Deleted' }])
    expect([await ready(), await accepted()]).toEqual(['False NotAccepted', 'False AccountNotFound'])
  })

  test('a key of a namespace that is admitted no more stays stopped when a standby takes over that has missed the edit', async () => {
    await issued()
    world.freezeWatch('Standbys', 'accounts')
    await edit({ namespaces: { matchLabels: { team: 'none' } } })
    const seen = new Set<string | undefined>()
    world.afterCall = async ({ verb }) => {
      if (verb === 'write' || verb === 'rebuild') seen.add((await keyRecord())?.state)
    }
    await world.restart()
    expect([...seen]).toEqual(['Suspended'])
    expect(await accepted()).toBe('False NamespaceNotAllowed')
  })

  test('a record that its Secret refused is written as soon as the Secret takes it', async () => {
    await issued()
    const isOfRecords = ({ verb, name }: { verb: string; name: string }): boolean => verb === 'update' && name.startsWith('hg-accounts-')
    world.refuse(isOfRecords, new KubeError('Other', 500, 'etcd is full'))
    await edit({ state: 'Suspended' })
    await applyPlan({ models: ['a'] })
    await world.pass(60)
    await world.settle()
    expect(await accountRecords()).toMatchObject([{ state: 'Suspended' }])
    const programmed = async () => [
      await world.condition(accounts, 'acme', 'Programmed'),
      await world.condition(plans, 'pro', 'Programmed'),
    ]
    expect(await programmed()).toEqual(['False RecordsFull', 'False RecordsFull'])
    const writes = world.writes.length
    await world.pass(60)
    await world.settle()
    expect(world.writes.slice(writes).filter((write) => !write.startsWith('update secrets hg-accounts-'))).toEqual([])
    world.beforeCall = () => undefined
    await world.pass(300)
    await world.settle()
    expect(await programmed()).toEqual(['True Programmed', 'True Programmed'])
    expect(await durable()).toMatch(/"Suspended"/)
    expect(await durable()).toMatch(/"models":\["a"\]/)
  })

  test('the end of a deleted Account that its Secret refused is written as soon as the Secret takes it', async () => {
    await issued()
    world.refuse(({ verb, name }) => verb === 'update' && name.startsWith('hg-accounts-'), new KubeError('Other', 500, 'etcd is full'))
    await world.objects.remove(accounts, ACME)
    await world.settle()
    expect(await accountRecords()).toMatchObject([{ state: 'Deleted' }])
    expect(await durable()).toMatch(/"Active"/)
    world.beforeCall = () => undefined
    await world.pass(20)
    await world.settle()
    expect(await durable()).toMatch(/"Deleted"/)
  })

  test('no key is refused while the namespaces cannot be listed, and none that was refused works again', async () => {
    await world.apply(namespaces, namespace(SHOP, { team: 'red' }))
    await issued({}, { namespaces: { matchLabels: { team: 'red' } } })
    await world.apply(accounts, account('strict'))
    await world.settle()
    await settledKey('stopped', { accountRef: { name: 'strict' } })
    await world.apply(accounts, account('strict', { namespaces: { matchLabels: { team: 'none' } } }))
    await world.settle()
    const states = async () => [(await keyRecord('bot'))?.state, (await keyRecord('stopped'))?.state]
    expect(await states()).toEqual(['Active', 'Suspended'])
    const seen = new Set<string>()
    world.afterCall = async ({ verb }) => {
      if (verb === 'write' || verb === 'rebuild') seen.add((await states()).join())
    }
    world.refusesLabels = true
    await world.restart()
    expect([...seen, (await states()).join()]).toEqual(['Active,Suspended', 'Active,Suspended'])
    await settledKey('new')
    expect([await keyRecord('new'), await accepted('new')]).toEqual([undefined, 'False AccountNotFound'])
    world.refusesLabels = false
    await world.restart()
    expect([await accepted('new'), await accepted('stopped')]).toEqual(['True Accepted', 'False NamespaceNotAllowed'])
  })

  test('a Plan that was replaced does not hold again when a standby takes over that has missed its end', async () => {
    await issued({ models: ['a', 'b'] })
    world.freezeWatch('Standbys', 'plans')
    await world.objects.remove(plans, PRO)
    await applyPlan({ models: ['a'] })
    await world.settle()
    const now = (await accountRecords())[0]?.plan
    expect((await planRecords()).find(({ uid }) => uid === now)?.models).toEqual(['a'])
    const seen = new Set<string | null | undefined>()
    world.afterCall = async ({ verb }) => {
      if (verb === 'write' || verb === 'rebuild') seen.add((await accountRecords())[0]?.plan)
    }
    await world.restart()
    expect([...seen]).toEqual([now])
    world.thawWatch()
    await world.settle()
    expect((await accountRecords())[0]?.plan).toBe(now)
  })

  test('an edit just before the mark of an Account is no failure', async () => {
    await applyPlan()
    let isFirst = true
    world.beforeCall = async ({ verb, plural }) => {
      if (verb !== 'patch' || plural !== 'accounts' || !isFirst) return
      isFirst = false
      await applyAccount({ displayName: 'Acme' })
    }
    await applyAccount()
    await world.settle()
    expect([isFirst, await world.condition(accounts, 'acme', 'Accepted')]).toEqual([false, 'True Accepted'])
    expect(world.logs.filter((line) => line.includes('mark failed'))).toEqual([])
  })

  describe('whose Secrets hg-accounts-* are lost', () => {
    const lose = async (set: 'accounts' | 'keyring'): Promise<void> => {
      for (const shard of await world.shards(set)) await world.objects.remove(secrets, refOf(shard))
    }

    test.each(['answers', 'is away'])('have their records at every moment of the next start, while Redis %s', async (redis) => {
      const value = await issued()
      await world.stopProcesses()
      await lose('accounts')
      const states = recordsOverTime()
      world.storeDown = redis === 'is away'
      await world.start()
      world.storeDown = false
      await world.pass(10)
      await world.settle()
      expect([...states].filter((text) => text !== 'Active with a plan')).toEqual([])
      expect([await ready(), await world.value()]).toEqual(['True Ready', value])
    })

    test.each(['answers', 'is away'])(
      'keep a key that the keyring has lost too, and whose Secret was deleted, while Redis %s',
      async (redis) => {
        await issued()
        const former = await keyRecord()
        await world.objects.remove(secrets, { namespace: SHOP, name: 'bot' })
        await world.settle()
        await world.stopProcesses()
        await lose('accounts')
        await lose('keyring')
        const lacking: string[] = []
        world.afterCall = async ({ verb }) => {
          if ((verb === 'write' || verb === 'rebuild') && (await keyRecord()) === undefined) lacking.push(verb)
        }
        world.storeDown = redis === 'is away'
        await world.start()
        world.storeDown = false
        await world.pass(10)
        await world.settle()
        expect(lacking).toEqual([])
        expect(await keyRecord()).toMatchObject({ state: 'Active', verifiers: [{ id: former?.verifiers[0]?.id }] })
        expect(await world.keyringEntries()).toMatchObject([{ account: former?.account, deletedMs: null }])
      },
    )
  })

  describe('the books of a name', () => {
    test('belong to the first Account, which carries the mark of the installation', async () => {
      await issued()
      const mark = (await live()).metadata.annotations?.[MARK_ANNOTATION]
      expect(mark?.endsWith(`/${uidOf(await live())}`)).toBe(true)
    })

    test('a new Account of a used name is refused until an administrator names the one that it succeeds', async () => {
      await issued()
      const former = await live()
      await world.objects.remove(accounts, ACME)
      await world.settle()
      await applyAccount()
      await world.settle()
      expect(await world.condition(accounts, 'acme', 'Accepted')).toBe('False NameUsed')
      expect(await world.message(accounts, 'acme', 'Accepted')).toContain(`${REOPEN_ANNOTATION}: ${uidOf(former)}`)
      expect(await accountRecords()).toMatchObject([{ uid: uidOf(former), state: 'Deleted' }])
      await applyAccount({}, { annotations: { [REOPEN_ANNOTATION]: uidOf(former) } })
      await world.settle()
      expect(await ready()).toBe('True Ready')
      expect(await keyRecord()).toMatchObject({ account: uidOf(await live()), state: 'Active' })
    })

    test('go on with the same spend: the account keeps its name in the ledger', async () => {
      await issued()
      const former = (await accountRecords())[0]
      await world.objects.remove(accounts, ACME)
      await world.settle()
      await applyAccount({}, { annotations: { [REOPEN_ANNOTATION]: former?.uid ?? '' } })
      await world.settle()
      const now = (await accountRecords()).find(({ state }) => state === 'Active')
      expect([now?.uid === former?.uid, now?.ledger === former?.ledger]).toEqual([false, true])
    })

    test('are found by a restored Account, whose mark names its former self', async () => {
      const value = await issued()
      const backup = await live()
      await world.objects.remove(accounts, ACME)
      await world.settle()
      await applyAccount({}, { annotations: backup.metadata.annotations ?? {} })
      await world.settle()
      expect([await ready(), await world.value()]).toEqual(['True Ready', value])
    })

    test('that are missing stop the keys with 503: gateways have no record, until an administrator begins them again', async () => {
      await issued()
      await world.stopProcesses()
      for (const { metadata } of await world.shards('balances'))
        await world.objects.remove(
          { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true },
          { namespace: 'headgate', name: metadata.name },
        )
      await world.start()
      expect(await world.condition(accounts, 'acme', 'Accepted')).toBe('False BooksMissing')
      expect(await accountRecords()).toEqual([])
      await applyAccount({}, { annotations: { ...(await live()).metadata.annotations, [REOPEN_ANNOTATION]: `new-${uidOf(await live())}` } })
      await world.settle()
      expect([await accountRecords(), await ready()]).toMatchObject([[{ state: 'Active' }], 'True Ready'])
    })

    test('an Account that another installation has marked is left alone, and its keys say so', async () => {
      await applyPlan()
      await applyAccount({}, { annotations: { [MARK_ANNOTATION]: 'another/uid' } })
      await settledKey()
      expect((await live()).status).toBeUndefined()
      expect([await accepted(), await accountRecords()]).toEqual(['False AccountNotAccepted', []])
      expect(await world.message(apiKeys, 'bot', 'Accepted')).toContain('another installation')
    })
  })

  test('a key without an account is refused where one is required, and others work as before', async () => {
    await world.restart({ accountRequiredNamespaces: [SHOP] })
    await world.settledKey({}, 'bot')
    await world.settledKey({}, 'bot', 'other')
    expect(await accepted()).toBe('False AccountRequired')
    expect(await world.value('bot', 'other')).toMatch(/^sk-/)
  })

  test('no key of an account is issued while a gateway knows no accounts', async () => {
    world.reports = { features: ['limits'] }
    await world.restart()
    await issued()
    expect(await accepted()).toBe('False GatewayTooOld')
    world.reports = {}
    await world.pass(70)
    await world.settle()
    expect(await ready()).toBe('True Ready')
  })

  test('a restart writes nothing but the claim of the books', async () => {
    await issued()
    await world.stopProcesses()
    world.writes.splice(0)
    await world.start()
    expect(world.writes.filter((write) => !write.includes('hg-balances-'))).toEqual([])
  })
})
