/**
 * kill -9 of the real operator process at each write of a creation, a suspension and a deletion, to the API server and to Redis: once before
 * the write is applied, and once after the write but before its answer. After every schedule a restart ends in the same state.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashCredential } from '#contract/values/credential.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { CrashingStack } from '../support/crashing-stack.ts'
import { untilEveryGateway } from '../support/gateway-answers.ts'
import { objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { projectedKeys } from '../support/projection-view.ts'
import type { Stack } from '../support/stack.ts'
import { eventually } from '../support/wait-for.ts'

/** More writes than any story has. */
const MAX_WRITES = 20
/** Keys that exist before each round of a story: one for each write that the story may have. */
const PREPARED = 8

const lab = openLab()
let stack: Stack
let crashing: CrashingStack
const watching = new AbortController()
/** Every value that a Secret ever held, by Secret name. */
let values: ReadonlyMap<string, ReadonlySet<string>>

beforeAll(async () => {
  crashing = await CrashingStack.open(lab, { gateways: 2 })
  stack = crashing.stack
  values = stack.values(watching.signal)
})
afterAll(() => {
  watching.abort()
  crashing.close()
})

interface Story {
  readonly name: string
  prepare(key: string): Promise<unknown>
  act(key: string): Promise<unknown>
  check(key: string): Promise<void>
}

const apply = (key: string, state = 'Active'): Promise<unknown> => stack.apply('ApiKey', key, { state, models: ['*'] })

const stories: readonly Story[] = [
  {
    name: 'creation',
    prepare: () => Promise.resolve(),
    act: apply,
    check: async (key) => {
      const object = await stack.untilCondition('ApiKey', key, 'Ready')
      const value = await stack.value(key)
      expect([...(values.get(key) ?? [])]).toEqual([value]) // one value per generation, ever
      expect((await recordOf(object.metadata.uid))?.verifiers.map((verifier) => verifier.hash)).toEqual([hashCredential(value)])
      await untilEveryGateway(stack.gateways, value, 200)
    },
  },
  {
    name: 'suspension',
    prepare: (key) => stack.issueKey(key),
    act: (key) => stack.setState(key, 'Suspended'),
    check: async (key) => {
      await stack.untilCondition('ApiKey', key, 'Ready', { status: 'False', reason: 'Suspended' })
      const value = await stack.value(key)
      expect([...(values.get(key) ?? [])]).toEqual([value])
      await untilEveryGateway(stack.gateways, value, 401)
    },
  },
  {
    name: 'deletion',
    prepare: (key) => stack.issueKey(key),
    act: (key) => stack.kube.remove(stack.path('ApiKey', key)),
    check: async (key) => {
      await eventually(async () => expect(await stack.kube.get(stack.path('ApiKey', key))).toBeUndefined())
      for (const value of values.get(key) ?? []) await untilEveryGateway(stack.gateways, value, 401)
      await eventually(async () => expect(await stack.kube.get(objectPath('v1', 'Secret', stack.namespace, key))).toBeUndefined())
    },
  },
]

it.each(stories)(
  '$name: killed before and after each write, the operator ends in the same state',
  async (story) => {
    let schedules = 0
    const killedAt: string[] = []
    const { gate } = crashing
    for (const when of ['before', 'after'] as const) {
      for (let write = 0; write < (story.name === 'creation' ? MAX_WRITES : PREPARED); write++) {
        const key = `${story.name}-${when}-${write}`
        if (write === 0) await Promise.all(Array.from({ length: PREPARED }, (_, i) => story.prepare(`${story.name}-${when}-${i}`)))
        if (write === 0 || story.name === 'creation') await crashing.quiet() // the last creation still has to write its mark
        crashing.arm({ write, when })
        await story.act(key)
        await story.check(key)
        if (!gate.hasKilled) await crashing.quiet()
        const { hasKilled } = gate
        gate.disarm()
        if (!hasKilled) break
        killedAt.push(`${when} ${gate.seen[write]}`)
        schedules += 1
        await crashing.leadsAgain()
        await story.check(key)
      }
    }
    process.stdout.write(`crash schedules of ${story.name}: ${schedules}\n`)
    await noOrphans()
    expect(schedules, killedAt.join('\n')).toBeGreaterThanOrEqual(6)
    expect(crashing.crashes).toEqual([])
  },
  300_000,
)

async function noOrphans(): Promise<void> {
  await eventually(async () => {
    const keys = await stack.list('ApiKey')
    expect((await projectedKeys(stack)).map((record) => record.uid).sort()).toEqual(keys.map((key) => key.metadata.uid ?? '').sort())
  })
}

async function recordOf(uid: string | undefined): Promise<KeyRecord | undefined> {
  return (await projectedKeys(stack)).find((record) => record.uid === uid)
}
