/** A ProjectionStore in memory. A test can fail its calls before or after they take effect, delay them, or record them. */
import type { RecordKind } from '#contract/records/record-kinds.ts'
import type { Acknowledgement, ProjectionMeta } from '#contract/records/revision-log.ts'
import type { LiveProcess, ProjectionChange, ProjectionStore, Writer, WriteOutcome } from '../../operator/projection/store.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { heartbeat } from './records.ts'

export type StoreCall = Exclude<keyof ProjectionStore, 'close'>

/** Wraps `memory`; replace it to lose everything. */
export class FaultyProjectionStore implements ProjectionStore {
  memory = new MemoryProjection()
  readonly calls: StoreCall[] = []
  readonly written: ProjectionChange[] = []
  /** Runs before a call takes effect. A throw is an outage. */
  before: (call: StoreCall) => void | Promise<void> = () => undefined
  /** Runs after a call has taken effect. A throw is a lost answer. */
  after: (call: StoreCall) => void | Promise<void> = () => undefined
  /** Pods that acknowledge every revision at once. */
  obedient: readonly string[] = []
  reports: Partial<Acknowledgement> = {}
  /** Replaces what the heartbeats say. */
  live: readonly LiveProcess[] | undefined

  stop(): void {
    this.before = () => {
      throw new Error('the store is down')
    }
  }

  resume(): void {
    this.before = () => undefined
    this.after = () => undefined
  }

  prepare(): Promise<void> {
    return this.#run('prepare', () => this.memory.prepare())
  }

  meta(): Promise<ProjectionMeta | undefined> {
    return this.#run('meta', () => this.memory.meta())
  }

  write(writer: Writer, epoch: string, changes: readonly ProjectionChange[], floor: number): Promise<WriteOutcome> {
    return this.#run('write', () => {
      this.written.push(...changes)
      return this.memory.write(writer, epoch, changes, floor)
    })
  }

  rebuild(writer: Writer, epoch: string, revision: number, records: readonly ProjectionChange[]): Promise<WriteOutcome> {
    return this.#run('rebuild', () => this.memory.rebuild(writer, epoch, revision, records))
  }

  ids(epoch: string, kind: RecordKind): Promise<readonly string[]> {
    return this.#run('ids', () => this.memory.ids(epoch, kind))
  }

  records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>> {
    return this.#run('records', () => this.memory.records(epoch, kind, ids))
  }

  liveProcesses(): Promise<readonly LiveProcess[]> {
    return this.#run('liveProcesses', async () => this.live ?? (await this.#obeying()))
  }

  async close(): Promise<void> {
    await this.memory.close()
  }

  async #obeying(): Promise<readonly LiveProcess[]> {
    const { epoch = '', revision = 0 } = (await this.memory.meta()) ?? {}
    return this.obedient.map((pod) => heartbeat(pod, { epoch, revision, ...this.reports }))
  }

  async #run<T>(call: StoreCall, act: () => Promise<T>): Promise<T> {
    await this.before(call)
    this.calls.push(call)
    const answer = await act()
    await this.after(call)
    return answer
  }
}
