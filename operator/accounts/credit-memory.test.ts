/** What one Credit costs in the memory of the operator: an installation may have hundreds of thousands. */
import { hash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { SignedMicros } from '#contract/values/signed-micros.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { CreditBooks } from './credit-books.ts'

const CREDITS = 100_000
const ACCOUNTS = 20_000
const MOST_BYTES = 300

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes in use, without garbage. */
function inUse(): number {
  for (let pass = 0; pass < 3; pass += 1) collect()
  const { heapUsed, external, arrayBuffers } = process.memoryUsage()
  return heapUsed + Math.max(external, arrayBuffers)
}

function books(kube: FakeKubePort): CreditBooks {
  const leader = { fence: () => 1, raiseFence: () => Promise.resolve(), onFenced: () => undefined }
  const common = { kube, namespace: 'headgate', clock: new ManualClock(), assertLeading: () => undefined, warn: () => undefined }
  return new CreditBooks({ ...common, leader })
}

test(`a Credit takes at most ${MOST_BYTES} bytes of memory`, async () => {
  const kube = new FakeKubePort()
  const writer = books(kube)
  await writer.load()
  for (let n = 0; n < CREDITS; n += 1) {
    const id = `stripe-${hash('sha256', `payment-${n}`, 'hex').slice(0, 40)}`
    const account = `u-${hash('sha256', `user-${n % ACCOUNTS}`, 'hex').slice(0, 20)}`
    const micros = (1 + (n % 40)) * 5_000_000
    const time = new Date(Date.UTC(2026, 0, 1) + n * 61_000).toISOString().replace('.000', '')
    writer.book({ id, account, micros: micros as SignedMicros, type: 'TopUp', time, reference: `pi_${id.slice(7, 31)}` }, 'change')
  }
  await writer.flush()
  kube.calls.length = 0
  const before = inUse()
  const reader = books(kube)
  await reader.load()
  const perCredit = (inUse() - before) / CREDITS
  expect(reader.countOf(`u-${hash('sha256', 'user-7', 'hex').slice(0, 20)}`)).toBe(CREDITS / ACCOUNTS)
  expect(perCredit).toBeLessThan(MOST_BYTES)
}, 180_000)
