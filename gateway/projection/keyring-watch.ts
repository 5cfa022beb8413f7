import { messageOf } from '#platform/message-of.ts'
import { sleep, type Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { uidIn } from '#contract/records/format.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { RecordTable } from './projection-source.ts'
import type { KeyringContent, KeyringFiles } from './keyring-files.ts'
import type { RevisionFollower } from './revision-follower.ts'

/** The key table, as far as the mounted keyring fills it. */
interface KeyringTable {
  /** Cold start: adds all keys until the projection is loaded. */
  seed(entries: readonly KeyringEntry[]): void
  /** Applies the keyring's state of known keys, mainly revocations. */
  override(entries: readonly KeyringEntry[]): void
  /** Whether an entry changes what the table knows from the projection. */
  isNeeded(entry: KeyringEntry): boolean
  readonly size: number
}

/** The table of accounts or plans. */
interface AccountTable extends RecordTable {
  /** Applies newer records of the folder to known ones, mainly suspensions. */
  override(texts: readonly string[]): void
}

interface KeyringWatchDeps {
  readonly files: Pick<KeyringFiles, 'signature' | 'read'>
  readonly keys: KeyringTable
  readonly models: RecordTable
  readonly accounts: AccountTable
  readonly plans: AccountTable
  readonly credentials: { replace(values: ReadonlyMap<string, string>): void }
  readonly follower: Pick<RevisionFollower, 'loadedFrom' | 'startedFromKeyring'>
  readonly coldStart: boolean
  readonly clock: Clock
  readonly log: Log
}

const READ_EVERY_MS = 2_000
/** Pause after a reading that lacked a file, as without a free file descriptor, ms. A revocation would else wait for the next change of the folder. */
const RETRY_MS = 10_000
/** Time that the projection has before the folder replaces it, ms. */
const COLD_START_AFTER_MS = 5_000

/** Revocations of the mounted folder count, whatever Redis says. A process that finds no projection starts from it. */
export class KeyringWatch {
  readonly #deps: KeyringWatchDeps
  readonly #stopped = new AbortController()
  readonly #coldStartAt: number
  #wake = new AbortController()
  #signature = ''
  #isStale = true
  /** Time of the next reading of an unchanged folder. */
  #retryAt = Infinity
  #problems = ''
  #running: Promise<void> = Promise.resolve()

  constructor(deps: KeyringWatchDeps) {
    this.#deps = deps
    this.#coldStartAt = deps.clock.monotonic() + COLD_START_AFTER_MS
  }

  /** Reads the folder once, so that its revocations are known before the first load, and then follows it. */
  async start(): Promise<void> {
    await this.#readFolder()
    this.#running = this.#run()
  }

  /** Reads the folder again soon: the records of a full load may be older than the folder. */
  reapply(): void {
    this.#isStale = true
    this.#wake.abort()
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#wake.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      const untilColdStart = this.#coldStartAt - this.#deps.clock.monotonic()
      const pauseMs = untilColdStart > 0 ? Math.min(untilColdStart, READ_EVERY_MS) : READ_EVERY_MS
      await sleep(this.#deps.clock, pauseMs, this.#wake.signal)
      this.#wake = new AbortController()
      if (!this.#stopped.signal.aborted) await this.#readFolder()
    }
  }

  async #readFolder(): Promise<void> {
    try {
      const signature = await this.#deps.files.signature()
      if (signature === this.#signature && !this.#isStale && !this.#mayStart() && this.#deps.clock.monotonic() < this.#retryAt) return
      const { files, keys, follower } = this.#deps
      // a process that serves from the projection never starts from the folder again; after a full load every entry may count again
      const isNeeded = follower.loadedFrom === 'Redis' && !this.#isStale ? (entry: KeyringEntry) => keys.isNeeded(entry) : undefined
      this.#signature = signature // taken before the read, so that changes during the read show next time
      this.#isStale = false
      const content = await files.read(isNeeded)
      this.#retryAt = content.isPartial ? this.#deps.clock.monotonic() + RETRY_MS : Infinity
      this.#apply(content)
    } catch (error) {
      this.#isStale = true // no entry of a reading that failed was looked at
      this.#report([`the keyring folder cannot be read (${messageOf(error)}); check KEYRING_DIR and its rights`])
    }
  }

  #mayStart(): boolean {
    const { follower, coldStart, clock } = this.#deps
    return coldStart && follower.loadedFrom === 'None' && clock.monotonic() >= this.#coldStartAt
  }

  /** Applies a content. It is synchronous, so that the state of the follower cannot change during the call. */
  #apply({ entries, models, accounts, credentials, unreadable, problems }: KeyringContent): void {
    this.#report(problems)
    this.#deps.credentials.replace(credentials)
    const { keys, follower, log } = this.#deps
    const isStart = this.#mayStart()
    if ((isStart || follower.loadedFrom === 'Keyring') && entries && models) {
      keys.seed(entries)
      this.#load(this.#deps.models, models)
      this.#load(this.#deps.plans, accounts.filter(isOf('plan')))
      this.#load(this.#deps.accounts, accounts.filter(isOf('account')))
      follower.startedFromKeyring(unreadable > 0)
      if (isStart)
        log.warn(
          { keys: keys.size, models: models.length },
          'no projection within 5 s: serving from the mounted keyring until there is one',
        )
    } else {
      if (entries) keys.override(entries)
      this.#deps.plans.override(accounts.filter(isOf('plan')))
      this.#deps.accounts.override(accounts.filter(isOf('account')))
    }
  }

  #load(table: RecordTable, texts: readonly string[]): void {
    const load = table.load()
    for (const text of texts) {
      const uid = uidIn(text) ?? ''
      if (!load.put(uid, text)) this.#deps.log.error({ uid }, 'a record of the keyring folder cannot be read: update the gateway')
    }
    load.commit()
  }

  /** Logs problems once per change, because the folder is read again and again. */
  #report(problems: readonly string[]): void {
    const text = problems.join('\n')
    if (text !== this.#problems) for (const problem of problems) this.#deps.log.error(problem)
    this.#problems = text
  }
}

/** Records of accounts and plans are in the same files. */
function isOf(kind: 'account' | 'plan'): (text: string) => boolean {
  return (text) => (JSON.parse(text) as { readonly kind?: unknown }).kind === kind
}
