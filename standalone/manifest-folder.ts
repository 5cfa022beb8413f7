/**
 * Keeps the ObjectStore equal to a folder of manifests, as `kubectl apply` and `kubectl delete` do in a cluster.
 *
 * The class polls the folder, so it notices every edit whatever the editor and the file system do. A file takes effect when it has not
 * changed for SETTLE_MS. A half-written file may be valid YAML with one document less, and a revoked key stays revoked. Therefore a missing
 * document deletes its object only when the file has not changed for REMOVAL_GRACE_MS. Half a document may be valid too. A program that
 * writes in blocks usually pauses within a line, so a file without a line break at its end takes effect only when it has not changed for
 * UNFINISHED_MS.
 */
import { messageOf } from '#platform/message-of.ts'
import { resolve } from 'node:path'
import type { Clock } from '#platform/clock.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'
import { apiKeys } from '#api/resources.ts'
import { isKubeError, refKey, refOf, type KubeObject } from '#kube/port.ts'
import { namespaces } from '#kube/resources.ts'
import { fileSystemError, type FolderScan, readUnchanged, scanFolder } from './folder-scan.ts'
import { manifestChangeSteps, type ManifestWrite } from './manifest-changes.ts'
import { unreadableManifestFile, type ManifestFile } from './manifest-file.ts'
import { manifestKinds, namespaceObject } from './manifest-kinds.ts'
import { originOf } from './manifest-origin.ts'
import { parseManifestFile } from './manifest-parser.ts'
import type { Complaint, ManifestRemoval } from './manifest-removals.ts'
import { decodeManifest, UnreadableFile } from './manifest-text.ts'
import type { ObjectStore } from './object-store.ts'
import { alikeLines, type LinePart } from './status-lines.ts'
import { Turns } from './turns.ts'

/** What the folder needs. */
export interface ManifestFolderOptions {
  readonly path: string
  readonly store: ObjectStore
  readonly clock: Clock
  readonly log: Log
  /** Last change to an object before it is stored (the address of the model server); returns the same object if nothing changes. */
  readonly adapt?: (object: KubeObject) => KubeObject
  /** Delete the objects of another folder, and all objects if the folder has no manifest left. */
  readonly prunesAll?: boolean
  /** Of the event loop, shared with other long work. */
  readonly turns?: Turns
}

/** Time from the end of one poll to the next; at worst an edit takes effect POLL_MS twice plus SETTLE_MS after it. */
export const POLL_MS = 150
/** A file must have been unchanged for this time, ms. */
export const SETTLE_MS = 300
/** A file without a line break at its end must have been unchanged for this time, ms. */
export const UNFINISHED_MS = 2_000
/** A file that lost a document must have been unchanged for this time before the object is deleted, ms. */
export const REMOVAL_GRACE_MS = 5_000
/** Longest pause between two polls of a folder that is slow to list, ms. The time to read changed files does not count. */
const LONGEST_PAUSE_MS = 1_000
const BUSY_FACTOR = 10

const ABSENT = 'absent'
/** Before the signature of a file that was read and seemed to be unfinished. */
const UNFINISHED = 'unfinished '
const NO_COMPLAINTS: ReadonlyMap<string, string> = new Map()

/** Syncs one folder into one store until `stop`. */
export class ManifestFolder {
  readonly #options: ManifestFolderOptions
  readonly #turns: Turns
  readonly #files = new Map<string, ManifestFile>()
  /** Signatures of the files in `#files`. */
  readonly #taken = new Map<string, string>()
  readonly #seen = new Map<string, { readonly signature: string; readonly sinceMs: number }>()
  /** Line → path of its file or folder. */
  #complaints = NO_COMPLAINTS
  #notes: FolderScan['notes'] = NO_COMPLAINTS
  /** Absolute path. */
  readonly #folder: string
  /** Changes of the running apply. */
  readonly #carriedOut: LinePart[] = []
  #isDirty = true
  /** Time at which a postponed removal is due. */
  #dueMs = Infinity
  #isAway = false
  readonly #stopping = new AbortController()
  #polling: Promise<void> = Promise.resolve()
  #cancel: () => void = () => undefined

  constructor(options: ManifestFolderOptions) {
    this.#options = options
    this.#turns = options.turns ?? new Turns()
    this.#folder = resolve(options.path)
    for (const { resource } of manifestKinds().values()) {
      options.store.informer(resource).subscribe((before, after) => {
        if (after === undefined && before !== undefined && originOf(before) !== undefined) this.#isDirty = true // a new object of its name can now be created
      })
    }
  }

  /**
   * Makes the store equal to the folder, then follows the folder.
   * @throws Misconfigured without such a folder: it would be unsafe to delete everything
   */
  async start(): Promise<void> {
    const { path } = this.#options
    try {
      await this.#take(await scanFolder(path), 0)
    } catch (error) {
      const [reason] = fileSystemError(error)
      throw new Misconfigured(`MANIFESTS: ${path} ${reason}; create the folder or set MANIFESTS to a folder of manifests`, { cause: error })
    }
    await this.#apply()
    this.#schedule(POLL_MS)
  }

  /** Polls once, now. @returns duration of the listing of the folder, ms */
  async poll(): Promise<number> {
    const { path, clock } = this.#options
    const startedMs = clock.monotonic()
    try {
      const scan = await scanFolder(path)
      const tookMs = clock.monotonic() - startedMs
      this.#back()
      await this.#take(scan, SETTLE_MS)
      if (this.#isDirty || clock.monotonic() >= this.#dueMs) await this.#applyOrComplain()
      return tookMs
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#away(error)
      return clock.monotonic() - startedMs
    }
  }

  #away(error: unknown): void {
    const { path, log } = this.#options
    if (this.#isAway) return
    this.#isAway = true
    const [reason] = fileSystemError(error)
    log.warn(`${path}: the folder ${reason}; all objects from it stay in force until the folder can be read`)
  }

  #back(): void {
    const { path, log } = this.#options
    if (!this.#isAway) return
    this.#isAway = false
    log.info(`${path}: the folder can be read again`)
  }

  async #applyOrComplain(): Promise<void> {
    const { path } = this.#options
    await this.#apply().catch((error: unknown) => {
      this.#isDirty = true
      this.#complain([{ path, line: `the manifests of ${path} cannot be applied: ${messageOf(error)}; Headgate keeps trying` }])
    })
  }

  /** Ends after the running poll. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#cancel()
    await this.#polling
  }

  #schedule(delayMs: number): void {
    this.#cancel = this.#options.clock.after(delayMs, () => {
      this.#polling = this.poll().then((listedMs) => {
        if (!this.#stopping.signal.aborted) this.#schedule(Math.min(Math.max(POLL_MS, BUSY_FACTOR * listedMs), LONGEST_PAUSE_MS))
      })
    })
  }

  async #take({ files, notes }: FolderScan, settleMs: number): Promise<void> {
    const deleted = [...this.#taken.keys()].filter((path) => !files.has(path))
    const settled = deleted.filter((path) => this.#isSettled(path, ABSENT, settleMs))
    if (settled.length === deleted.length) for (const path of deleted) this.#drop(path) // otherwise a folder that is deleted file by file would lose its first files
    for (const [path, signature] of files) if (this.#isDue(path, signature, settleMs)) await this.#read(path, signature)
    if ([...notes].some(([path, note]) => this.#notes.get(path) !== note) || notes.size !== this.#notes.size) this.#isDirty = true
    this.#notes = notes
  }

  /** Whether a file is to be read. */
  #isDue(path: string, signature: string, settleMs: number): boolean {
    const taken = this.#taken.get(path)
    if (!this.#isSettled(path, signature, settleMs) || taken === signature) return false
    return taken !== UNFINISHED + signature || this.#isSettled(path, signature, UNFINISHED_MS)
  }

  #isSettled(path: string, signature: string, settleMs: number): boolean {
    const nowMs = this.#options.clock.monotonic()
    const last = this.#seen.get(path)
    if (last?.signature !== signature) this.#seen.set(path, { signature, sinceMs: nowMs })
    const sinceMs = last?.signature === signature ? last.sinceMs : nowMs
    return nowMs - sinceMs >= settleMs
  }

  #drop(path: string): void {
    this.#files.delete(path)
    this.#taken.delete(path)
    this.#seen.delete(path)
    this.#isDirty = true
  }

  async #read(path: string, signature: string): Promise<void> {
    let taken = signature
    try {
      const read = await readUnchanged(`${this.#options.path}/${path}`, signature)
      if (read === undefined) return
      const text = decodeManifest(read.bytes)
      const isUnfinished = endsWithinLine(path, text) && !this.#isOld(path, signature, read.changedMs)
      if (isUnfinished) taken = UNFINISHED + signature
      const { signal } = this.#stopping
      this.#files.set(path, isUnfinished ? unreadableManifestFile(path, HALF_A_LINE) : await parseManifestFile(path, text, signal))
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error
      this.#files.set(path, unreadableManifestFile(path, error))
    }
    this.#taken.set(path, taken)
    this.#isDirty = true
  }

  /** Whether a file has not changed for UNFINISHED_MS: as far as polls have seen, or, at a start, by the time that it has. */
  #isOld(path: string, signature: string, changedMs: number): boolean {
    return this.#isSettled(path, signature, UNFINISHED_MS) || this.#options.clock.now() - changedMs >= UNFINISHED_MS
  }

  async #apply(): Promise<void> {
    const { store, log, path: shownFolder, prunesAll = false } = this.#options
    this.#isDirty = false
    const present = await Promise.all([...manifestKinds().values()].map(({ resource }) => store.list(resource, '')))
    const options = { folder: this.#folder, shownFolder, prunesAll }
    const changes = await this.#turns.run(manifestChangeSteps([...this.#files.values()], present.flat(), options))
    const { due, postponed } = this.#split(changes.removals)
    const failures: Complaint[] = []
    const attempt = async (path: string, what: string, act: () => Promise<void>): Promise<void> => {
      await this.#turns.next()
      if (this.#stopping.signal.aborted) return
      await act().catch((error: unknown) => failures.push({ path, line: `${what}: ${messageOf(error)}; Headgate keeps trying` }))
    }
    for (const removal of due)
      await attempt(removal.path, `${removal.resource.kind} ${refKey(removal.ref)} cannot be deleted`, () => this.#remove(removal))
    for (const write of changes.writes)
      await attempt(shownFolder, `${write.resource.kind} ${refKey(refOf(write.object))} cannot be written`, () => this.#write(write))
    for (const object of keptObjects(present.flat(), changes.writes, due))
      await attempt(shownFolder, `${object.kind} ${refKey(refOf(object))} cannot be written`, () => this.#adaptKept(object))
    for (const { fields, text } of alikeLines(this.#carriedOut.splice(0))) log.info({ ...fields }, text)
    if (failures.length > 0) this.#isDirty = true
    const notes = [...this.#notes].map(([path, note]) => ({ path, line: `${path}: ${note}` }))
    this.#complain([...notes, ...changes.complaints, ...postponed.map(postponedLine), ...failures])
  }

  /** Splits removals. One whose file still exists waits until the file has been unchanged for a while. */
  #split(removals: readonly ManifestRemoval[]): {
    readonly due: readonly ManifestRemoval[]
    readonly postponed: readonly ManifestRemoval[]
  } {
    const nowMs = this.#options.clock.monotonic()
    const dueMs = ({ path, isFileThere }: ManifestRemoval): number =>
      isFileThere ? (this.#seen.get(path)?.sinceMs ?? nowMs) + REMOVAL_GRACE_MS : nowMs
    const postponed = removals.filter((removal) => dueMs(removal) > nowMs)
    this.#dueMs = Math.min(...postponed.map(dueMs)) // Infinity without any
    return { due: removals.filter((removal) => dueMs(removal) <= nowMs), postponed }
  }

  async #remove({ resource, ref, path, isFileThere }: ManifestRemoval): Promise<void> {
    await this.#options.store.remove(resource, ref)
    const cause = isFileThere ? `its document was removed from ${path}` : `its manifest ${path} was deleted`
    const effect = resource.plural === apiKeys.plural ? 'the key is revoked' : 'deleted'
    this.#carriedOut.push(carriedOut('Deleted', resource.kind, refKey(ref), `${cause}; ${effect}`))
  }

  async #write({ resource, object, before: checked }: ManifestWrite): Promise<void> {
    const { store, adapt = (same) => same } = this.#options
    await this.#ensureNamespace(object.metadata.namespace)
    const wanted = adapt(object)
    const before = checked && (await store.get(resource, refOf(object))) // the operator may have written it since it was checked
    if (!isStill(before, checked)) return void (this.#isDirty = true)
    try {
      const after = before === undefined ? await store.create(resource, wanted) : await store.update(resource, succeed(before, wanted))
      if (after.metadata.resourceVersion !== before?.metadata.resourceVersion)
        this.#carriedOut.push(carriedOut('Applied', resource.kind, refKey(refOf(object)), 'applied'))
    } catch (error) {
      if (!isKubeError(error, 'Conflict', 'AlreadyExists')) throw error
      this.#isDirty = true // the operator wrote it in between: try again at the next poll
    }
  }

  /** Adapts an object that stays in force without a valid manifest, which also follows the model server. */
  async #adaptKept(object: KubeObject): Promise<void> {
    const { store, adapt = (same) => same } = this.#options
    const resource = manifestKinds().get(object.kind)?.resource
    const adapted = adapt(object)
    if (resource !== undefined && adapted !== object) await store.update(resource, adapted)
  }

  /** Creates a missing namespace, because namespaces need no manifest. One with a manifest keeps its labels. */
  async #ensureNamespace(name: string | undefined): Promise<void> {
    if (name === undefined) return
    const { store } = this.#options
    if ((await store.get(namespaces, { namespace: '', name })) === undefined) await store.create(namespaces, namespaceObject(name))
  }

  /** Logs each complaint once, and again if it comes back. Logs one line when all complaints about a file are resolved. */
  #complain(complaints: readonly Complaint[]): void {
    const { log } = this.#options
    const next = new Map(complaints.map(({ path, line }) => [line, path]))
    for (const line of next.keys()) if (!this.#complaints.has(line)) log.warn(line)
    const open = new Set(next.values())
    const resolved = new Set([...this.#complaints.values()].filter((path) => !open.has(path) && this.#files.has(path)))
    for (const path of resolved) log.info(`${path}: the file is in force again without problems`)
    this.#complaints = next
  }
}

/** Whether the present object is the one that was checked, and is not about to be deleted. */
function isStill(present: KubeObject | undefined, checked: KubeObject | undefined): boolean {
  return present?.metadata.uid === checked?.metadata.uid && present?.metadata.deletionTimestamp === undefined
}

/** Objects from a folder that are neither written nor deleted. */
function keptObjects(
  present: readonly KubeObject[],
  writes: readonly ManifestWrite[],
  removals: readonly ManifestRemoval[],
): readonly KubeObject[] {
  const idOf = (kind: string, ref: string): string => `${kind} ${ref}`
  const handled = new Set([
    ...writes.map(({ object }) => idOf(object.kind, refKey(refOf(object)))),
    ...removals.map(({ resource, ref }) => idOf(resource.kind, refKey(ref))),
  ])
  return present.filter((object) => {
    const isOurs = originOf(object) !== undefined && object.metadata.deletionTimestamp === undefined
    return isOurs && !handled.has(idOf(object.kind, refKey(refOf(object))))
  })
}

function carriedOut(change: 'Applied' | 'Deleted', kind: string, name: string, words: string): LinePart {
  return { level: 'info', kind, name, words, text: '', facts: { change, ...(change === 'Deleted' ? { message: words } : {}) } }
}

function postponedLine({ resource, ref, path }: ManifestRemoval): Complaint {
  const effect = resource.plural === apiKeys.plural ? ', and its key is revoked permanently' : ''
  return {
    path,
    line: `${path}: ${resource.kind} ${refKey(ref)} is not in this file any more; it is deleted in ${REMOVAL_GRACE_MS / 1_000} s${effect}; put its document back to keep it`,
  }
}

const HALF_A_LINE = new UnreadableFile(
  'does not end with a line break, as if a program were still writing the file',
  `end the file with a line break; without one it takes effect when it has not changed for ${UNFINISHED_MS / 1_000} s`,
)

/** JSON that is cut off is never valid. */
function endsWithinLine(path: string, text: string): boolean {
  return text !== '' && !/[\r\n]$/.test(text) && !path.endsWith('.json')
}

/** The wanted object as the next state of the stored one: labels and annotations from the manifest, the rest of metadata from the store. */
function succeed(before: KubeObject, wanted: KubeObject): KubeObject {
  const { labels: _labels, annotations: _annotations, ...kept } = before.metadata
  return { ...wanted, metadata: { ...kept, ...wanted.metadata } }
}
