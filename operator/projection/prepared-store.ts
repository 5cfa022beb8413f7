import type { ProjectionChange, ProjectionStore } from './store.ts'

/** What has to happen first. */
export interface Preparation {
  /** The store is being made ready for a writer. */
  prepare(): Promise<void>
  /** These changes are about to be written; in a rebuild they are all records there are. */
  beforeWrite(changes: readonly ProjectionChange[], how: 'write' | 'rebuild'): Promise<void>
}

/** A store to which nothing is written before its preparation is done: a gateway that learns a record finds what the record needs. */
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
