/**
 * A table that the projection fills: keys (`auth/key-table.ts`) and models (`upstream/model-table.ts`). The follower feeds both
 * without knowing what is in them.
 */
export interface RecordTable {
  /** Applies one change. @returns false when the text cannot be read: the last good record stays */
  put(id: string, text: string): boolean
  delete(id: string): void
  /** Whether a readable record of that id is here. */
  has(id: string): boolean
  /** Starts a full load beside the serving data; nothing changes until `commit`. */
  load(): RecordLoad
}

/** A full load under way: a second set of data that replaces the first at once. */
export interface RecordLoad {
  /** @returns false when the text cannot be read: on commit the last good record of that id stays, if there is one */
  put(id: string, text: string): boolean
  delete(id: string): void
  commit(): void
}
