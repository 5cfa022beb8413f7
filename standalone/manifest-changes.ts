/** Computes the changes that make the store equal to the manifests. Pure: files and present objects in, changes and complaints out. */
import { nearest, type ManifestError, shownText } from '#api/manifest-error.ts'
import { API_GROUP } from '#api/metadata.ts'
import type { KubeObject, Resource } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { objectId, type ManifestDocument, type ManifestFile } from './manifest-file.ts'
import { type ManifestKind, type ManifestKinds, manifestKinds } from './manifest-kinds.ts'
import { FOLDER_ANNOTATION, MANIFEST_ANNOTATION, originOf } from './manifest-origin.ts'
import { positionsIn, type Locate } from './manifest-position.ts'
import { type Complaint, decideRemovals, type ManifestRemoval } from './manifest-removals.ts'

/** A wanted write; `before` undefined = create. */
export interface ManifestWrite {
  readonly resource: Resource
  readonly object: KubeObject
  readonly before: KubeObject | undefined
}

/** All changes, and one line for each problem that a person must fix. */
export interface ManifestChanges {
  readonly writes: readonly ManifestWrite[]
  readonly removals: readonly ManifestRemoval[]
  readonly complaints: readonly Complaint[]
}

/** The source of the manifests. */
export interface ManifestOptions {
  readonly kinds?: ManifestKinds
  /** Absolute path of the folder. */
  readonly folder?: string
  /** The folder as in the settings, for messages. */
  readonly shownFolder?: string
  /** Delete the objects of another folder, and all objects if the folder has no manifest left. */
  readonly prunesAll?: boolean
}

interface Claim {
  readonly file: ManifestFile
  readonly document: ManifestDocument
}

interface Checked {
  readonly write?: ManifestWrite
  readonly complaints: readonly Complaint[]
}

/** As `manifestChangeSteps`, at once. */
export function decideManifestChanges(
  files: readonly ManifestFile[],
  present: readonly KubeObject[],
  options: ManifestOptions = {},
): ManifestChanges {
  const steps = manifestChangeSteps(files, present, options)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/**
 * Compares the folder with the store, one document per step: thousands of documents take seconds.
 * - The first file by path wins a name; the others are named.
 * - An invalid document keeps the last valid version of its object. A document without an identity keeps all objects from its file,
 *   and so does a file without documents.
 * - An object whose document or file was deleted is deleted, unless the folder has no manifest left.
 * @param files in any order
 * @param present all stored objects of the kinds that manifests may have
 */
export function* manifestChangeSteps(
  files: readonly ManifestFile[],
  present: readonly KubeObject[],
  options: ManifestOptions = {},
): Generator<void, ManifestChanges> {
  const { kinds = manifestKinds(), folder = '', shownFolder = folder, prunesAll = false } = options
  const known = new Map(present.map((object) => [idOf(object), object]))
  const sorted = files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const { claims, complaints } = yield* claimNames(sorted)
  const checker = new Checker(kinds, folder)
  const checked: Checked[] = []
  for (const [id, claim] of claims) {
    checked.push(checker.check(claim, known.get(id)))
    yield
  }
  const removals = decideRemovals({
    files: sorted,
    present: present.filter(({ kind }) => kinds.has(kind)),
    isClaimed: (object) => claims.has(idOf(object)),
    hasManifests: [...claims.values()].some(({ document }) => kinds.has(document.kind)),
    resourceOf: ({ kind }) => kinds.get(kind)?.resource,
    folder,
    shownFolder,
    prunesAll,
  })
  return {
    writes: checked.flatMap(({ write }) => (write === undefined ? [] : [write])),
    removals: removals.removals,
    complaints: [...complaints, ...removals.complaints, ...checked.flatMap((one) => one.complaints)],
  }
}

function* claimNames(files: readonly ManifestFile[]): Generator<void, { claims: Map<string, Claim>; complaints: Complaint[] }> {
  const claims = new Map<string, Claim>()
  const complaints: Complaint[] = []
  for (const file of files) {
    const locate = positionsIn(file.text)
    for (const document of file.documents) {
      const first = claims.get(document.id ?? '')
      if (document.id === undefined)
        complaints.push(complaint({ file, document }, document.error ?? UNNAMED, locate, 'objects from this file stay in force'))
      else if (first === undefined) claims.set(document.id, { file, document })
      else complaints.push(complaint({ file, document }, takenName(first, file), locate))
      yield
    }
  }
  return { claims, complaints }
}

const UNNAMED: ManifestError = { field: 'metadata.name', reason: 'is missing', remedy: 'write a name below metadata' }

function takenName({ file, document }: Claim, own: ManifestFile): ManifestError {
  const place = file === own ? `${document.number} of this file` : `${document.number} of ${file.path}`
  return { field: 'metadata.name', reason: `is the name of ${place} too, which is in force`, remedy: 'rename or remove one of the two' }
}

/** Checks documents with a name. */
class Checker {
  readonly #kinds: ManifestKinds
  readonly #folder: string
  /** Position finders by file. */
  readonly #locates = new Map<ManifestFile, Locate>()

  constructor(kinds: ManifestKinds, folder: string) {
    this.#kinds = kinds
    this.#folder = folder
  }

  check(claim: Claim, before: KubeObject | undefined): Checked {
    const kind = this.#kinds.get(claim.document.kind)
    if (kind === undefined) return this.#refused(claim, unusedKind(claim.document, [...this.#kinds.values()]))
    if (before?.metadata.deletionTimestamp !== undefined) return { complaints: [] } // the new object waits until the old one is deleted
    if (before !== undefined && kind.resource === secrets && originOf(before) === undefined) return this.#refused(claim, NOT_OURS)
    const checked = kind.check(claim.document.value, before)
    if (!checked.ok) return this.#invalid(claim, checked.errors, before !== undefined)
    const write = { resource: kind.resource, object: this.#withOrigin(checked.object, claim.file.path), before }
    return { write, complaints: this.#ignored(claim) }
  }

  #refused(claim: Claim, error: ManifestError): Checked {
    return { complaints: [complaint(claim, error, this.#locate(claim.file))] }
  }

  #invalid(claim: Claim, [error = UNNAMED, ...more]: readonly ManifestError[], hasLastValid: boolean): Checked {
    const fields = new Set(more.map(({ field }) => field))
    const rest = more.length === 0 ? '' : `${more.length} more in ${[...fields].join(', ')}; `
    const consequence = rest + (hasLastValid ? 'the last valid version stays in force' : 'it is not in force')
    return { complaints: [complaint(claim, error, this.#locate(claim.file), consequence)] }
  }

  /** A complaint about finalizers. The operator's own one is in every object exported from a cluster, and is accepted. */
  #ignored(claim: Claim): readonly Complaint[] {
    const { metadata } = claim.document.value as { readonly metadata: { readonly finalizers?: unknown } } // checked
    const { finalizers } = metadata
    const foreign = Array.isArray(finalizers) ? finalizers.filter((name) => !String(name).startsWith(`${API_GROUP}/`)) : []
    if (foreign.length === 0) return []
    const error = { field: 'metadata.finalizers', reason: 'is ignored without a cluster', remedy: 'remove it' }
    return [complaint(claim, error, this.#locate(claim.file), 'the rest is in force')]
  }

  #locate(file: ManifestFile): Locate {
    const locate = this.#locates.get(file) ?? positionsIn(file.text)
    this.#locates.set(file, locate)
    return locate
  }

  #withOrigin(object: KubeObject, path: string): KubeObject {
    const annotations = { ...object.metadata.annotations, [MANIFEST_ANNOTATION]: path, [FOLDER_ANNOTATION]: this.#folder }
    return { ...object, metadata: { ...object.metadata, annotations } }
  }
}

const NOT_OURS: ManifestError = { field: 'metadata.name', reason: 'is a Secret of the operator', remedy: 'choose another name' }

/** An unknown kind is a typing mistake; a known one is used only in a cluster. */
function unusedKind({ kind, value }: ManifestDocument, kinds: readonly ManifestKind[]): ManifestError {
  const known = kinds.map(({ resource }) => resource.kind)
  const near = nearest(kind, known)
  const own = kinds.filter(({ resource }) => resource.group === API_GROUP).map(({ resource }) => resource.kind)
  const isOwnGroup =
    typeof value === 'object' && value !== null && 'apiVersion' in value && String(value.apiVersion).startsWith(`${API_GROUP}/`)
  const reason = `${shownText(kind) ?? 'this kind'} is not known`
  if (near !== undefined) return { field: 'kind', reason, remedy: `did you mean ${near}?` }
  if (isOwnGroup) return { field: 'kind', reason, remedy: `use ${own.join(' or ')}` }
  return { field: 'kind', reason: `${shownText(kind) ?? 'this kind'} is not used without a cluster`, remedy: 'remove the document' }
}

function complaint({ file, document }: Claim, error: ManifestError, locate: Locate, consequence?: string): Complaint {
  const position = document.position ?? locate(document.place, error.field)
  const place = position === undefined ? file.path : `${file.path}:${position.line}:${position.column}`
  const subject = [place, document.title, error.field].filter((part) => part !== '').join(': ')
  return {
    path: file.path,
    line: `${subject}: ${error.reason}; ${error.remedy}${consequence === undefined ? '' : ` (${consequence})`}`,
  }
}

function idOf(object: KubeObject): string {
  return objectId(object.kind, object.metadata.namespace ?? '', object.metadata.name)
}
