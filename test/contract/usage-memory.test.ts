import { MemoryUsage } from '../../standalone/memory-usage.ts'
import { describeUsageStore } from './usage-store.suite.ts'

describeUsageStore('MemoryUsage', () => {
  let nowMs = 0
  const store = new MemoryUsage(() => nowMs)
  return Promise.resolve({
    gateway: store,
    operator: store,
    setClock: (ms) => Promise.resolve(void (nowMs = ms)),
    empty: () => Promise.resolve(store.empty()),
  })
})
