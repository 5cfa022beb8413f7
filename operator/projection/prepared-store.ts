import type { ProjectionChange, ProjectionStore } from './store.ts'

/** Work that must be done before a write. */
export interface Preparation {
  /** Prepares the store for a writer. */
  prepare(): Promise<void>
  /** Called before these changes are written. In a rebuild the changes are all records. */
  beforeWrite(changes: readonly ProjectionChange[], how: 'write' | 'rebuild'): Promise<void>
}

/** A store whose writes wait for a preparation, so that a gateway that learns a record finds the data that the record needs. */
export function preparedStore(store: ProjectionStore, preparation: Preparation): ProjectionStore {
  return {
    async prepare() {
      await store.prepare()
      await preparation.prepare()
    },
    meta: () => store.meta(),
    async write(writer, epoch, changes, floor) {
      await preparation.beforeWrite(changes, 'write')
      return await store.write(writer, epoch, changes, floor)
    },
    async rebuild(writer, epoch, revision, records) {
      await preparation.beforeWrite(records, 'rebuild')
      return await store.rebuild(writer, epoch, revision, records)
    },
    ids: (epoch, kind) => store.ids(epoch, kind),
    records: (epoch, kind, ids) => store.records(epoch, kind, ids),
    liveProcesses: () => store.liveProcesses(),
    close: () => store.close(),
  }
}
