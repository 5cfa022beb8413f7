import { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import { MemoryBalanceStore } from '../../standalone/memory-balance-store.ts'
import { describeLedgerBalances } from './ledger-balance.suite.ts'
import { describeLedgerStore, type LedgerStoreSubject } from './ledger-store.suite.ts'

async function makeSubject(): Promise<LedgerStoreSubject> {
  let nowMs = 0
  const store = new MemoryLedgerStore(() => nowMs)
  return {
    store,
    setClock: async (ms) => void (nowMs = ms),
    seed: async (subject, seed, checkpoints) => store.seed(subject, seed, checkpoints),
    reap: async (subject, process) => store.reap(subject, process),
    forget: async (subject, fields) => store.forget(subject, fields),
    balances: new MemoryBalanceStore(store),
    wipe: async (subject) => store.drop(subject),
  }
}

describeLedgerStore('MemoryLedgerStore', makeSubject)
describeLedgerBalances('MemoryLedgerStore', makeSubject)
