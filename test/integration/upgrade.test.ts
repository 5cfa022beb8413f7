/**
 * This version and a next one, mixed and rolled in both directions under load: no key is refused or lost, and Programmed is true. Also,
 * texts of an unknown version stay unchanged, byte for byte.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { AnswerWatch, type ExpectedAnswer } from '../support/answer-watch.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import { keyringEntries, replaceEntry, storedRecords, storeRecord, type StoredEntry } from '../support/durable-bytes.ts'
import { answerOf, differences, untilEveryGateway } from '../support/gateway-answers.ts'
import { conditionsOf } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { buildNextVersion, NEXT_VERSION } from '../support/other-versions.ts'
import type { Program } from '../support/program.ts'
import { eventReasons } from '../support/reported.ts'
import { sized, timeLimit } from '../support/sizes.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const KEYS = sized(400, 1_000)
const PER_SECOND = 100

interface Head {
  readonly v: number
  readonly uid: string
  readonly name: string
}

const lab = openLab()

const headOf = (text: string): Head => JSON.parse(text) as Head

async function issueMany(stack: Stack, count: number): Promise<ExpectedAnswer[]> {
  const names = numbered('key', count)
  const spec = { models: ['*'] }
  const namespace = stack.namespace
  await atOnce(names, (name) => stack.apply('ApiKey', name, spec, namespace))
  const values = await atOnce(names, async (name) => {
    await stack.untilCondition('ApiKey', name, 'Ready', { deadlineMs: 240_000 })
    return await stack.value(name)
  })
  return names.map((name, i) => ({ name, credential: values[i] ?? '', status: 200 }))
}

describe('this version and the next one', () => {
  let stack: Stack
  let bundles = ''
  let keys: readonly ExpectedAnswer[] = []
  /** A key that is suspended and resumed at each step. */
  let probe = ''

  beforeAll(async () => {
    bundles = await buildNextVersion(lab.folder)
    stack = await lab.stack({ gateways: 2 })
    keys = await issueMany(stack, KEYS)
    probe = await stack.issueKey('probe')
  }, timeLimit(400_000))

  /** Pods that get requests: neither a pod that is not ready yet nor a pod that is about to end. */
  let serving: readonly Program[] = []

  /** Replaces one pod as a rolling update does: the new pod serves before the old pod ends. */
  async function rollGateway(to: 'next' | 'this'): Promise<void> {
    const old = stack.gateways[0]
    await stack.addGateway(to === 'next' ? { bundles } : {})
    await stack.publishGateways()
    if (!old) return
    serving = stack.gateways.filter((one) => one !== old)
    await stack.publishGateways(stack.gateways.filter((one) => one !== old).map(({ spec }) => spec.pod))
    await stack.remove(old)
  }

  async function rollOperator(to: 'next' | 'this'): Promise<void> {
    const old = stack.operator
    await stack.addOperator(to === 'next' ? { bundles } : {})
    await stack.remove(old)
  }

  async function expectTruthful(step: string): Promise<void> {
    for (const [state, answer] of [['Suspended', 401] as const, ['Active', 200] as const]) {
      await stack.setState('probe', state)
      const object = await stack.untilCondition('ApiKey', 'probe', 'Programmed')
      const answers = await Promise.all(stack.gateways.map((gateway: Program) => answerOf(gateway, probe)))
      expect(answers, `${step}: ${state} is Programmed`).toEqual(stack.gateways.map(() => answer))
      expect(object.status.programmed).toMatchObject({ ready: stack.gateways.length, total: stack.gateways.length })
    }
  }

  const versions = async (): Promise<Set<number>> => new Set(Object.values(await storedRecords(stack)).map((text) => headOf(text).v))

  /** Waits until new records are of the new version, which every live pod reads. */
  async function untilNewVersion(): Promise<void> {
    let edits = 0
    const edited = async (): Promise<void> => {
      await stack.setState('probe', edits++ % 2 === 0 ? 'Suspended' : 'Active')
      expect(await versions()).toContain(NEXT_VERSION)
    }
    await eventually(edited, { everyMs: 500 })
  }

  it(
    `rolled in both directions with ${KEYS} keys under ${PER_SECOND} requests a second: zero 401, no key lost, Programmed is true throughout`,
    async () => {
      serving = [...stack.gateways]
      const watch = new AnswerWatch(() => serving, keys, PER_SECOND)
      const steps: readonly [string, () => Promise<void>][] = [
        ['a gateway forward', () => rollGateway('next')],
        ['the operator forward', () => rollOperator('next')],
        ['the other gateway forward', () => rollGateway('next')],
        ['everything is new', () => untilNewVersion()],
        ['a gateway back', () => rollGateway('this')],
        ['only the version that all programs read', async () => eventually(async () => expect(await versions()).toEqual(new Set([1])))],
        ['the operator back', () => rollOperator('this')],
        ['the other gateway back', () => rollGateway('this')],
      ]
      for (const [step, roll] of steps) {
        await roll()
        await expectTruthful(step)
        const issued = await stack.issueKey(`made-after-${step.replaceAll(' ', '-')}`)
        await untilEveryGateway(stack.gateways, issued, 200)
      }
      expect(await watch.stop()).toEqual([])
      expect(watch.counts['200']).toBeGreaterThan(KEYS)
      expect(await differences(stack.gateways, new Map(keys.map(({ name, credential }) => [name, credential])), 200)).toEqual([])
      expect((await keyringEntries(stack)).length).toBeGreaterThanOrEqual(KEYS)
      for (const { status } of await stack.list('ApiKey')) {
        expect(JSON.stringify(status.conditions)).not.toMatch(/KeyLost|EntryUnreadable/)
      }
    },
    timeLimit(600_000),
  )
})

describe('the entry of an unknown version', () => {
  let stack: Stack
  const foreign = 'foreign'
  let credential = ''
  let uid = ''
  let entry: StoredEntry
  let record = ''
  let neighbour = ''

  /** The text as a later version may have written it: same key, another version, fields of any shape. */
  const later = (text: string): string =>
    JSON.stringify({ ...(JSON.parse(text) as object), v: 3, models: { all: true }, lim: [{ rpm: 60 }] })

  beforeAll(async () => {
    stack = await lab.stack({ gateways: 2, operatorEnv: { KEYRING_SHARDS: '1' } })
    credential = await stack.issueKey(foreign)
    neighbour = await stack.issueKey('neighbour')
    uid = (await stack.kube.get(stack.path('ApiKey', foreign)))?.metadata.uid ?? ''
    await waitFor('the entry to be written', async () => (await keyringEntries(stack)).some(({ text }) => headOf(text).uid === uid))
    await stack.operator.stop()
    const found = (await keyringEntries(stack)).find(({ text }) => headOf(text).uid === uid)
    if (!found) throw new Error('the keyring has no entry of the key')
    entry = { ...found, text: later(found.text) }
    await replaceEntry(stack, found, entry.text)
    record = later((await storedRecords(stack))[uid] ?? '{}')
    await storeRecord(stack, uid, record)
    await stack.operator.start()
    await stack.kube.merge(stack.path('ApiKey', 'neighbour'), { spec: { models: ['only-this'] } }) // writes the same shard
    await stack.untilCondition('ApiKey', 'neighbour', 'Programmed')
  })

  it('stays byte for byte in the keyring and in Redis while other keys are written', async () => {
    await waitFor('the shard to be written', async () => (await keyringEntries(stack)).some(({ text }) => text.includes('only-this')))
    expect((await keyringEntries(stack)).map(({ text }) => text)).toContain(entry.text)
    expect((await storedRecords(stack))[uid]).toBe(record)
    await stack.operator.restart()
    await stack.kube.merge(stack.path('ApiKey', 'neighbour'), { spec: { models: ['*'] } })
    await stack.untilCondition('ApiKey', 'neighbour', 'Programmed')
    await waitFor(
      'the shard to be written again',
      async () => !(await keyringEntries(stack)).some(({ text }) => text.includes('only-this')),
    )
    expect((await keyringEntries(stack)).map(({ text }) => text)).toContain(entry.text)
    expect((await storedRecords(stack))[uid]).toBe(record)
  })

  it('is reported by a condition and one Event on the ApiKey, one line in the log, and a metric', async () => {
    const object = await waitFor('the condition', async () => {
      const found = await stack.kube.get(stack.path('ApiKey', foreign))
      return conditionsOf(found).some(({ reason }) => reason === 'EntryUnreadable') && found
    })
    expect(conditionsOf(object).find(({ reason }) => reason === 'EntryUnreadable')?.message).toMatch(/newer version.*update/is)
    expect((await eventReasons(stack, stack.namespace, uid)).filter((reason) => reason === 'EntryUnreadable')).toEqual(['EntryUnreadable'])
    const linesOfLeader = (): readonly string[] => {
      const log = stack.operator.process.log()
      return log.slice(log.lastIndexOf('"leading"')).split('\n')
    }
    // the condition may be older than this process, which starts to lead before it has read the keyring
    await eventually(async () => expect(linesOfLeader().filter((line) => line.includes('version 3'))).toHaveLength(1))
    expect(await stack.operator.metrics()).toMatch(/^headgate_operator_unreadable_entries(\{[^}]*\})? [1-9]/m)
  })

  it('does not stop its key: gateways that know the key admit it, and a gateway that starts does not refuse it with 401', async () => {
    expect(
      await differences(
        stack.gateways,
        new Map([
          [foreign, credential],
          ['neighbour', neighbour],
        ]),
        200,
      ),
    ).toEqual([])
    const fresh = await stack.addGateway({ start: false })
    await fresh.launch()
    await waitFor('it to answer the neighbour', async () => (await answerOf(fresh, neighbour)) === 200)
    expect(await answerOf(fresh, credential)).not.toBe(401)
    await stack.remove(fresh)
  })
})
