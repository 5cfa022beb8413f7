/** Metrics of the tables: their size, their source and their age. */
import { Gauge, type Registry } from 'prom-client'
import type { RevisionFollower } from './revision-follower.ts'

const SOURCES = ['Redis', 'Keyring', 'None'] as const

/** The part of a follower that the metrics show. */
type Followed = Pick<RevisionFollower, 'unreadForMs' | 'unreadableRecords' | 'loadedFrom'>

/** Adds the metrics to a registry. Their values are read at each scrape. */
export function registerProjectionMetrics(registry: Registry, keys: { readonly size: number }, follower: Followed): void {
  const registers = [registry]
  new Gauge({ name: 'headgate_keys', help: 'Keys in the table of this process', registers, collect: set(() => keys.size) })
  new Gauge({
    name: 'headgate_projection_unread_seconds',
    help: 'Seconds since the tables were last known to be up to date with the projection',
    registers,
    collect: set(() => follower.unreadForMs / 1_000),
  })
  new Gauge({
    name: 'headgate_unreadable_records',
    help: 'Records whose newest text this process cannot read, since another version wrote it or it is damaged',
    registers,
    collect: set(() => follower.unreadableRecords),
  })
  new Gauge({
    name: 'headgate_table_source',
    help: '1 for where the tables were loaded from',
    labelNames: ['source'] as const,
    registers,
    collect() {
      for (const source of SOURCES) this.set({ source }, source === follower.loadedFrom ? 1 : 0)
    },
  })
}

function set(value: () => number): (this: Gauge) => void {
  return function () {
    this.set(value())
  }
}
