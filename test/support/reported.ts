/** Checks the report to the owner of an object that does not work: a condition with reason and remedy, and one Event. */
import { expect } from 'vitest'
import { conditionOf, objectPath, type TestObject } from './kube-admin.ts'
import type { Stack } from './stack.ts'
import { eventually } from './wait-for.ts'

export interface Reported {
  readonly kind: 'ApiKey' | 'ServedModel'
  readonly name: string
  readonly namespace: string
  readonly type: string
  /** Status of the condition; default: False. */
  readonly status?: 'False' | 'Unknown'
  readonly reason: string
  /** Parts of the message: the cause in the server's own words, and the remedy. */
  readonly message: RegExp
  /** Expected status of Ready; default: False. */
  readonly ready?: 'True' | 'False'
}

/** Refused calls are retried at growing intervals, at most this long, ms. */
const RETRIED_WITHIN_MS = 120_000

/** Reasons of the Events about one object, once per Event; a series is one. */
export async function eventReasons(stack: Stack, namespace: string, uid: string | undefined): Promise<string[]> {
  const events = await stack.kube.list(objectPath('events.k8s.io/v1', 'Event', namespace))
  return events.filter((event) => (event.regarding as { uid?: string } | undefined)?.uid === uid).map(({ reason }) => String(reason))
}

/** Waits until the object has the condition, and asserts that exactly one Event reports it too. @returns the object */
export async function expectReported(stack: Stack, expected: Reported): Promise<TestObject> {
  const { kind, name, namespace, type, status = 'False', reason, message, ready = 'False' } = expected
  const object = await stack.untilCondition(kind, name, type, { namespace, status, reason })
  expect(conditionOf(object, type)?.message).toMatch(message)
  await stack.untilCondition(kind, name, 'Ready', { namespace, status: ready })
  await eventually(async () => {
    const reasons = await eventReasons(stack, namespace, object.metadata.uid)
    expect(reasons.filter((one) => one === reason)).toEqual([reason])
  })
  return object
}

/** Waits until the object works and nothing of the report is left in its status. */
export async function expectCleared(stack: Stack, { kind, name, namespace, type, reason }: Reported): Promise<void> {
  await stack.untilCondition(kind, name, type, { namespace, deadlineMs: RETRIED_WITHIN_MS })
  const object = await stack.untilCondition(kind, name, 'Ready', { namespace, deadlineMs: RETRIED_WITHIN_MS })
  expect(JSON.stringify(object.status.conditions)).not.toContain(`"${reason}"`)
}
