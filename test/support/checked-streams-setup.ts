/** Loaded before each test file of the layers that have gateways: a test fails if it, or a hook before it, has read a stream of wrong grammar. */
import { afterAll, afterEach, expect } from 'vitest'
import { checkedFetch, takeFaults } from './checked-streams.ts'

const INSTALLED = Symbol.for('headgate.checkedFetch')

const expectNone = (): void => expect(takeFaults()).toEqual([])

// files of a layer that is not isolated share one process
if (!(INSTALLED in globalThis)) {
  const original = globalThis.fetch
  Object.assign(globalThis, { [INSTALLED]: true })
  globalThis.fetch = checkedFetch(original)
}
afterEach(expectNone)
afterAll(expectNone)
