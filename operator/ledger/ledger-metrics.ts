/** What the ledger measures. */
export interface LedgerMetrics {
  /** Subjects were read. */
  read(subjects: number): void
  /** Subjects of which the ledger had lost spend. */
  restored(subjects: number): void
  /** Holds of dead processes were counted as spent. */
  reaped(holds: number): void
  /** Keys without an owner were dropped. */
  swept(keys: number): void
  /** Usage of days that are over was taken over: days of keys. */
  usageFolded(days: number): void
  /** Usage was dropped before its time, for lack of room: days of keys. */
  usageDropped(days: number): void
  /** @param seconds asked at each scrape: how long the oldest known spend waits to become durable */
  checkpointAge(seconds: () => number): void
}
