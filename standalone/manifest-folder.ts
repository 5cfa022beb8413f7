/**
 * Keeps the ObjectStore equal to a folder of manifests: what `kubectl apply` and `kubectl delete` are in a cluster.
 *
 * It polls. Every edit is seen whatever the editor and the file system do, and a file is acted upon only when it has been left alone for
 * SETTLE_MS: half a file that is still being written may be valid YAML with a document less, and a key that was revoked stays revoked.
 */
import type { Clock } from '../gateway/process/clock.ts'
import { Misconfigured } from '../gateway/process/lifecycle.ts'
import type { Log } from '../gateway/process/log.ts'
import { isKubeError, refKey, refOf, type KubeObject } from '../operator/kube/port.ts'
import { namespaces } from '../operator/kube/resources.ts'
import { readUnchanged, scanFolder } from './folder-scan.ts'
import { decideManifestChanges, MANIFEST_ANNOTATION, type ManifestWrite } from './manifest-changes.ts'
import { readManifestFile, unreadableManifestFile, type ManifestFile } from './manifest-file.ts'
import { manifestKinds, namespaceObject } from './manifest-kinds.ts'
import type { ObjectStore } from './object-store.ts'

/** What it works with. */
export interface ManifestFolderOptions {
  readonly path: string
  readonly store: ObjectStore
  readonly clock: Clock
  readonly log: Log
  /** Last change to an object before it is stored (the address of the model server). */
  readonly adapt?: (object: KubeObject) => KubeObject
}

/** A look is due this long after the last one began; at worst an edit acts POLL_MS twice plus SETTLE_MS after it. */
export const POLL_MS = 150
/** A file must have been the same for so long. */
export const SETTLE_MS = 300
const BUSY_FACTOR = 10 // a folder so large that a look takes long is looked at less often

const ABSENT = 'absent'

/** Syncs one folder into one store until it is stopped. */
export class ManifestFolder {
  readonly #options: ManifestFolderOptions
  readonly #files = new Map<string, ManifestFile>()
  /** Signature of what `#files` holds. */
  readonly #taken = new Map<string, string>()
  readonly #seen = new Map<string, { readonly signature: string; readonly sinceMs: number }>()
  #complaints: ReadonlySet<string> = new Set()
  #isDirty = true
  #stopped = false
  #looking: Promise<void> = Promise.resolve()
  #cancel: () => void = () => undefined

  constructor(options: ManifestFolderOptions) {
    this.#options = options
    for (const { resource } of manifestKinds().values()) {
      options.store.informer(resource).subscribe((before, after) => {
        if (after === undefined && before?.metadata.annotations?.[MANIFEST_ANNOTATION] !== undefined) this.#isDirty = true // its successor may come now
      })
    }
  }

  /**
   * Brings the store to what the folder says now, then follows it.
   * @throws Misconfigured when there is no such folder: that everything is to be deleted is no safe guess
   */
  async start(): Promise<void> {
    const { path } = this.#options
    try {
      await this.#take(await scanFolder(path), 0)
    } catch (error) {
      throw new Misconfigured(
        `MANIFESTS: ${path} cannot be read (${messageOf(error)}); create the folder or set MANIFESTS to a folder of manifests`,
        { cause: error },
      )
    }
    await this.#apply()
    this.#schedule(POLL_MS)
  }

  /** Looks once, now. */
  async look(): Promise<void> {
    const { path } = this.#options
    try {
      await this.#take(await scanFolder(path), SETTLE_MS)
    } catch (error) {
      this.#isDirty = true
      return this.#complain([`${path}: ${messageOf(error)}; everything stays as it is until the folder can be read`])
    }
    if (!this.#isDirty) return
    await this.#apply().catch((error: unknown) => {
      this.#isDirty = true
      this.#complain([`the manifests of ${path} cannot be applied: ${messageOf(error)}; Headgate keeps trying`])
    })
  }

  /** Ends; a look under way is finished first. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await this.#looking
  }

  #schedule(delayMs: number): void {
    const { clock } = this.#options
    this.#cancel = clock.after(delayMs, () => {
      const startedMs = clock.monotonic()
      this.#looking = this.look().then(() => {
        const tookMs = clock.monotonic() - startedMs
        if (!this.#stopped) this.#schedule(Math.max(POLL_MS, BUSY_FACTOR * tookMs))
      })
    })
  }

  async #take(scan: ReadonlyMap<string, string>, settleMs: number): Promise<void> {
    for (const path of new Set([...scan.keys(), ...this.#taken.keys()])) {
      const signature = scan.get(path) ?? ABSENT
      if (!this.#isSettled(path, signature, settleMs) || this.#taken.get(path) === signature) continue
      if (signature === ABSENT) this.#drop(path)
      else await this.#read(path, signature)
    }
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
    try {
      const text = await readUnchanged(`${this.#options.path}/${path}`, signature)
      if (text === undefined) return
      this.#files.set(path, readManifestFile(path, text))
    } catch (error) {
      this.#files.set(path, unreadableManifestFile(path, messageOf(error)))
    }
    this.#taken.set(path, signature)
    this.#isDirty = true
  }

  async #apply(): Promise<void> {
    const { store, log } = this.#options
    this.#isDirty = false
    const present = await Promise.all([...manifestKinds().values()].map(({ resource }) => store.list(resource, '')))
    const changes = decideManifestChanges([...this.#files.values()], present.flat())
    const failures: string[] = []
    const attempt = async (what: string, act: () => Promise<void>): Promise<void> => {
      await act().catch((error: unknown) => failures.push(`${what}: ${messageOf(error)}; Headgate keeps trying`))
    }
    for (const { resource, ref } of changes.removals)
      await attempt(`${resource.kind} ${refKey(ref)} cannot be removed`, async () => {
        await store.remove(resource, ref)
        log.info(`${resource.kind} ${refKey(ref)}: its manifest is gone; deleting`)
      })
    for (const write of changes.writes)
      await attempt(`${write.resource.kind} ${refKey(refOf(write.object))} cannot be written`, () => this.#write(write))
    if (failures.length > 0) this.#isDirty = true
    this.#complain([...changes.complaints, ...failures])
  }

  async #write({ resource, object, before }: ManifestWrite): Promise<void> {
    const { store, log, adapt = (same) => same } = this.#options
    await this.#ensureNamespace(object.metadata.namespace)
    const wanted = adapt(object)
    try {
      const after = before === undefined ? await store.create(resource, wanted) : await store.update(resource, succeed(before, wanted))
      if (after.metadata.resourceVersion !== before?.metadata.resourceVersion)
        log.info(`${resource.kind} ${refKey(refOf(object))}: applied`)
    } catch (error) {
      if (!isKubeError(error, 'Conflict', 'AlreadyExists')) throw error
      this.#isDirty = true // the operator wrote it in between: once more at the next look
    }
  }

  /** Namespaces need no manifest here; one that has a manifest keeps its labels. */
  async #ensureNamespace(name: string | undefined): Promise<void> {
    if (name === undefined) return
    const { store } = this.#options
    if ((await store.get(namespaces, { namespace: '', name })) === undefined) await store.create(namespaces, namespaceObject(name))
  }

  /** Each complaint is said once, and again only after it was cured. */
  #complain(lines: readonly string[]): void {
    for (const line of lines) if (!this.#complaints.has(line)) this.#options.log.warn(line)
    this.#complaints = new Set(lines)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The wanted object as the next state of the present one: labels and annotations are the manifest's, the rest of metadata stays. */
function succeed(before: KubeObject, wanted: KubeObject): KubeObject {
  const { labels: _labels, annotations: _annotations, ...kept } = before.metadata
  return { ...wanted, metadata: { ...kept, ...wanted.metadata } }
}
