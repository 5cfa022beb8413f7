/** Metrics of the ledger. */
export interface LedgerMetrics {
  /** Counts read subjects. */
  read(subjects: number): void
  /** Counts subjects whose lost spend was restored. */
  restored(subjects: number): void
  /** Counts holds of dead processes that were settled as spent. */
  reaped(holds: number): void
  /** Counts dropped Redis keys without an ApiKey. */
  swept(keys: number): void
  /** @param seconds called at each scrape: the time for which the oldest known spend has waited to become durable */
  checkpointAge(seconds: () => number): void
}
