/** The cache of a kind that is not watched: it never has an object. */
import type { Informer } from './port.ts'

export function emptyInformer(): Informer {
  return {
    synced: Promise.resolve(),
    isSynced: () => true,
    get: () => undefined,
    list: () => [],
    subscribe: () => undefined,
    addIndex: () => undefined,
    byIndex: () => [],
  }
}
