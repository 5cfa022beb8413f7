import { beforeEach, expect, test } from 'vitest'
import { hashCredential } from '#contract/values/credential.ts'
import { FakeKubePort } from '../../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { UsedValues } from './used-values.ts'

const [A, B, C] = [hashCredential('sk-a'), hashCredential('sk-b'), hashCredential('sk-c')]

let kube: FakeKubePort
let clock: ManualClock

beforeEach(() => {
  kube = new FakeKubePort()
  clock = new ManualClock()
})

async function opened(most?: number): Promise<UsedValues> {
  const values = new UsedValues({ kube, namespace: 'headgate', clock, assertLeading: () => undefined, warn: () => undefined }, most)
  await values.load()
  return values
}

/** Resolves when the writes are durable, which need the test clock and real time. */
async function durable(...writes: ReadonlyArray<Promise<void>>): Promise<void> {
  let isOver = false
  const all = Promise.all(writes).finally(() => (isOver = true))
  while (!isOver) {
    await clock.advance(10)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await all
}

test('a hash that one namespace has used is known there and taken elsewhere, also by the next leader', async () => {
  const first = await opened()
  await durable(first.record({ namespace: 'shop', hash: A, isRevoked: false }, 'change'))
  for (const values of [first, await opened()]) {
    expect([values.useOf(A, 'shop', false), values.useOf(A, 'evil', false), values.useOf(A, 'evil', true)]).toEqual([
      'Known',
      'Taken',
      'New',
    ])
    expect(values.useOf(B, 'evil', false)).toBe('New')
  }
})

test('a revoked hash is taken in its own namespace too, and stays so when it is named again', async () => {
  const values = await opened()
  await durable(values.record({ namespace: 'shop', hash: A, isRevoked: false }, 'change'))
  expect(values.isRevoked(A, 'shop')).toBe(false)
  await durable(values.record({ namespace: 'shop', hash: A, isRevoked: true }, 'change'))
  expect([values.isRevoked(A, 'shop'), values.useOf(A, 'shop', true)]).toEqual([true, 'Taken'])
})

test('a namespace that has used as many values as are kept needs proofs, and its revocations are recorded no more', async () => {
  const values = await opened(2)
  await durable(...[A, B].map((hash) => values.record({ namespace: 'shop', hash, isRevoked: false }, 'change')))
  expect([values.useOf(C, 'shop', false), values.useOf(C, 'shop', true), values.useOf(A, 'shop', false)]).toEqual(['Full', 'New', 'Known'])
  expect([values.isRevoked(C, 'shop'), values.isRevoked(A, 'shop')]).toEqual([true, false])
  expect(values.useOf(C, 'other', false)).toBe('New')
})
