import { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import { describeLedgerStore } from './ledger-store.suite.ts'

describeLedgerStore('MemoryLedgerStore', async () => {
  let nowMs = 0
  const store = new MemoryLedgerStore(() => nowMs)
  return {
    store,
    setClock: async (ms) => void (nowMs = ms),
    seed: async (subject, seed, checkpoints) => store.seed(subject, seed, checkpoints),
    reap: async (subject, process) => store.reap(subject, process),
    forget: async (subject, fields) => store.forget(subject, fields),
    wipe: async (subject) => store.drop(subject),
  }
})
