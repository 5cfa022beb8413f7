/** A table that the follower fills without knowing its content: keys (`auth/key-table.ts`), models (`upstream/model-table.ts`). */
export interface RecordTable {
  /** Applies a change. @returns false if the text cannot be read; the last good record then stays */
  put(id: string, text: string): boolean
  delete(id: string): void
  has(id: string): boolean
  /** Starts a full load beside the data in use, which stay unchanged until `commit`. */
  load(): RecordLoad
}

/** A running full load: a second set of data that replaces the first at once. */
export interface RecordLoad {
  /** @returns false if the text cannot be read; `commit` then keeps the last good record of that id, if any */
  put(id: string, text: string): boolean
  delete(id: string): void
  commit(): void
}
