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
import { isKubeError, shownRef, refOf, type KubeObject } from '#kube/port.ts'
import { namespaces } from '#kube/resources.ts'
import { type Complaint, decideManifestChanges, type ManifestRemoval, type ManifestWrite, originOf } from './manifest-changes.ts'
import { type ManifestFile, parseManifestFile, unreadableFile } from './manifest-documents.ts'
import { fileSystemError, type FolderScan, readManifest, scanFolder } from './manifest-files.ts'
import { manifestKinds, namespaceObject } from './manifest-kinds.ts'
import { logLines, type ObjectLine } from './object-lines.ts'
import type { ObjectStore } from './object-store.ts'
import { makeTurns, type Turns } from './turns.ts'

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

/** Time from the end of one poll to the next; an edit takes effect at most POLL_MS twice plus SETTLE_MS after it. */
export const POLL_MS = 150
/** A file must have been unchanged for this time, ms. */
export const SETTLE_MS = 300
/** A file without a line break at its end must have been unchanged for this time, ms. */
export const UNFINISHED_MS = 2_000
/** A file that lost a document must have been unchanged for this time before the object is deleted, ms. */
export const REMOVAL_GRACE_MS = 5_000

/** Signature of a deleted file. */
const ABSENT = 'absent'

/** What the folder knows of a path. */
interface Known {
  signature: string
  /** Time since which the signature is the same, on the monotonic clock. */
  sinceMs: number
  /** The file is read when the signature has been the same for this time, ms. */
  readAfterMs: number
  file?: ManifestFile
}

/** Syncs one folder into one store until `stop`. */
export class ManifestFolder {
  readonly #options: ManifestFolderOptions
  readonly #turns: Turns
  /** Absolute path. */
  readonly #folder: string
  readonly #known = new Map<string, Known>()
  #notes: FolderScan['notes'] = new Map()
  /** Logged line → path of its file or folder. */
  #complaints: ReadonlyMap<string, string> = new Map()
  #isDirty = true
  /** Time at which a postponed removal is due. */
  #dueMs = Infinity
  #isAway = false
  #isStopping = false
  #polling: Promise<void> = Promise.resolve()
  #cancel: () => void = () => undefined

  constructor(options: ManifestFolderOptions) {
    this.#options = options
    this.#turns = options.turns ?? makeTurns()
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
    this.#pollSoon()
  }

  /** Polls once, now. */
  async poll(): Promise<void> {
    const { path, clock, log } = this.#options
    try {
      const scan = await scanFolder(path)
      if (this.#isAway) log.info(`${path}: the folder can be read again`)
      this.#isAway = false
      await this.#take(scan, SETTLE_MS)
    } catch (error) {
      if (error instanceof Ended) return
      const [reason] = fileSystemError(error)
      if (!this.#isAway) log.warn(`${path}: the folder ${reason}; all objects from it stay in force until the folder can be read`)
      this.#isAway = true
      return
    }
    if (this.#isDirty || clock.monotonic() >= this.#dueMs) await this.#apply()
  }

  /** Ends after the running poll. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#cancel()
    await this.#polling
  }

  #pollSoon(): void {
    this.#cancel = this.#options.clock.after(POLL_MS, () => {
      this.#polling = this.poll().then(() => {
        if (!this.#isStopping) this.#pollSoon()
      })
    })
  }

  async #take({ files, notes }: FolderScan, settleMs: number): Promise<void> {
    const deleted = [...this.#known].filter(([path]) => !files.has(path))
    if (deleted.length > 0 && deleted.every(([path]) => this.#unchangedMs(this.#note(path, ABSENT)) >= settleMs)) {
      for (const [path] of deleted) this.#known.delete(path) // all at once: a folder that is deleted file by file must not lose its first files
      this.#isDirty = true
    }
    for (const [path, signature] of files) {
      const known = this.#note(path, signature, settleMs)
      if (this.#unchangedMs(known) >= known.readAfterMs) await this.#read(path, known)
    }
    if ([...notes].join() !== [...this.#notes].join()) this.#isDirty = true
    this.#notes = notes
  }

  /** Notes the present signature of a path. */
  #note(path: string, signature: string, readAfterMs = Infinity): Known {
    const present = this.#known.get(path)
    if (present?.signature === signature) return present
    const known = { ...present, signature, readAfterMs, sinceMs: this.#options.clock.monotonic() }
    this.#known.set(path, known)
    return known
  }

  #unchangedMs({ sinceMs }: Known): number {
    return this.#options.clock.monotonic() - sinceMs
  }

  async #read(path: string, known: Known): Promise<void> {
    if (this.#isStopping) return
    const read = await readManifest(`${this.#options.path}/${path}`, known.signature)
    if (read === undefined) return
    known.readAfterMs = Infinity
    this.#isDirty = true
    if (!('text' in read)) return void (known.file = unreadableFile(path, ...read))
    const unchangedMs = Math.max(this.#unchangedMs(known), this.#options.clock.now() - read.changedMs) // at a start, the file knows for how long
    if (endsWithinLine(path, read.text) && unchangedMs < UNFINISHED_MS) {
      known.readAfterMs = UNFINISHED_MS
      known.file = unreadableFile(path, ...HALF_A_LINE)
    } else known.file = await parseManifestFile(path, read.text, { pause: () => this.#pause() })
  }

  /** Leaves a turn of the event loop to others. @throws when the program ends in the middle of long work */
  async #pause(): Promise<void> {
    await this.#turns()
    if (this.#isStopping) throw new Ended()
  }

  async #apply(): Promise<void> {
    const { path } = this.#options
    this.#isDirty = false
    try {
      await this.#applyAll()
    } catch (error) {
      if (error instanceof Ended) return
      this.#isDirty = true
      this.#complain([{ path, line: `the manifests of ${path} cannot be applied: ${messageOf(error)}; Headgate keeps trying` }])
    }
  }

  async #applyAll(): Promise<void> {
    const { store, log, path: shownFolder, prunesAll = false } = this.#options
    const present = (await Promise.all([...manifestKinds().values()].map(({ resource }) => store.list(resource, '')))).flat()
    const files = [...this.#known.values()].flatMap(({ file }) => file ?? [])
    const options = { folder: this.#folder, shownFolder, prunesAll, pause: () => this.#pause() }
    const { writes, removals, complaints } = await decideManifestChanges(files, present, options)
    const { due, postponed } = this.#whenDue(removals)
    const failures: Complaint[] = []
    const done: ObjectLine[] = []
    for (const change of [...due, ...writes]) {
      await this.#pause()
      const isWrite = 'object' in change
      try {
        done.push(...(isWrite ? await this.#write(change) : await this.#remove(change)))
      } catch (error) {
        const name = `${change.resource.kind} ${shownRef(isWrite ? refOf(change.object) : change.ref)}`
        const line = `${name} cannot be ${isWrite ? 'written' : 'deleted'}: ${messageOf(error)}; Headgate keeps trying`
        failures.push({ path: isWrite ? shownFolder : change.path, line })
      }
    }
    logLines(log, done)
    if (failures.length > 0) this.#isDirty = true
    const notes = [...this.#notes].map(([path, note]) => ({ path, line: `${path}: ${note}` }))
    this.#complain([...notes, ...complaints, ...postponed.map(postponedLine), ...failures])
  }

  /** A removal whose file still exists waits until the file has been unchanged for a while. */
  #whenDue(removals: readonly ManifestRemoval[]): Record<'due' | 'postponed', readonly ManifestRemoval[]> {
    const nowMs = this.#options.clock.monotonic()
    const dueMs = ({ path, isFileThere }: ManifestRemoval): number =>
      isFileThere ? (this.#known.get(path)?.sinceMs ?? nowMs) + REMOVAL_GRACE_MS : nowMs
    const postponed = removals.filter((removal) => dueMs(removal) > nowMs)
    this.#dueMs = Math.min(...postponed.map(dueMs)) // Infinity without any
    return { due: removals.filter((removal) => dueMs(removal) <= nowMs), postponed }
  }

  async #remove({ resource, ref, path, isFileThere }: ManifestRemoval): Promise<readonly ObjectLine[]> {
    await this.#options.store.remove(resource, ref)
    const [one, many] = isFileThere
      ? [`its document was removed from ${path}`, `their documents were removed from ${path}`]
      : [`its manifest ${path} was deleted`, `their manifest ${path} was deleted`]
    const isKey = resource.plural === apiKeys.plural
    const words = `${one}; ${isKey ? 'the key is revoked' : 'deleted'}`
    const manyWords = `${many}; ${isKey ? 'the keys are revoked' : 'deleted'}`
    return [{ level: 'info', kind: resource.kind, name: shownRef(ref), words, manyWords, facts: { change: 'Deleted', message: words } }]
  }

  async #write({ resource, object, before }: ManifestWrite): Promise<readonly ObjectLine[]> {
    const { store, adapt = (same) => same } = this.#options
    await this.#ensureNamespace(object.metadata.namespace)
    const wanted = adapt(object)
    try {
      const after = before === undefined ? await store.create(resource, wanted) : await store.update(resource, succeed(before, wanted))
      if (after.metadata.resourceVersion === before?.metadata.resourceVersion) return []
      return [{ level: 'info', kind: resource.kind, name: shownRef(refOf(object)), words: 'applied', facts: { change: 'Applied' } }]
    } catch (error) {
      if (!isKubeError(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
      this.#isDirty = true // the operator has written it since it was checked: try again at the next poll
      return []
    }
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
    const resolved = new Set([...this.#complaints.values()].filter((path) => !open.has(path) && this.#known.has(path)))
    for (const path of resolved) log.info(`${path}: the file is in force again without problems`)
    this.#complaints = next
  }
}

/** The program ends in the middle of long work. */
class Ended extends Error {}

function postponedLine({ resource, ref, path }: ManifestRemoval): Complaint {
  const effect = resource.plural === apiKeys.plural ? ', and its key is revoked permanently' : ''
  return {
    path,
    line: `${path}: ${resource.kind} ${shownRef(ref)} is not in this file any more; it is deleted in ${REMOVAL_GRACE_MS / 1_000} s${effect}; put its document back to keep it`,
  }
}

const HALF_A_LINE = [
  'does not end with a line break, as if a program were still writing the file',
  `end the file with a line break; without one it takes effect when it has not changed for ${UNFINISHED_MS / 1_000} s`,
] as const

/** JSON that is cut off is never valid. */
function endsWithinLine(path: string, text: string): boolean {
  return text !== '' && !/[\r\n]$/.test(text) && !path.endsWith('.json')
}

/** The wanted object as the next state of the stored one: labels and annotations from the manifest, the rest of metadata from the store. */
function succeed(before: KubeObject, wanted: KubeObject): KubeObject {
  const { labels: _labels, annotations: _annotations, ...kept } = before.metadata
  return { ...wanted, metadata: { ...kept, ...wanted.metadata } }
}
