/** Computes the changes that make the store equal to the manifests: files and present objects in, changes and complaints out. */
import { nearest, type ManifestError, shownText } from '#api/manifest-error.ts'
import { API_GROUP } from '#api/metadata.ts'
import { shownRef, refOf, type KubeObject, type ObjectRef, type Resource } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { objectId, type ManifestDocument, type ManifestFile } from './manifest-documents.ts'
import { type ManifestKind, type ManifestKinds, manifestKinds } from './manifest-kinds.ts'

/** On every object from a folder: the file of its manifest. The folder never changes or deletes an object without this annotation. */
export const MANIFEST_ANNOTATION = 'headgate.dev/manifest'
/** The folder of that file, as an absolute path: objects of another folder are not deleted because this folder lacks their manifests. */
export const FOLDER_ANNOTATION = 'headgate.dev/manifest-folder'

/** A wanted write; `before` undefined = create. */
export interface ManifestWrite {
  readonly resource: Resource
  readonly object: KubeObject
  readonly before: KubeObject | undefined
}

/** An object to delete because its manifest is missing. */
export interface ManifestRemoval {
  readonly resource: Resource
  readonly ref: ObjectRef
  /** File of its former manifest. */
  readonly path: string
  /** Whether the file still exists: a slow writer may be about to write the document again. */
  readonly isFileThere: boolean
}

/** A problem that a person must fix. */
export interface Complaint {
  /** The file or the folder with the problem. */
  readonly path: string
  readonly line: string
}

/** All changes, and one line for each problem. */
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
  /** Called after each document: thousands of documents take seconds. */
  readonly pause?: () => Promise<void>
}

interface Claim {
  readonly path: string
  readonly document: ManifestDocument
}

/** Maximum number of names in a line. */
const MAX_NAMES = 5

/**
 * Compares the folder with the store.
 * - The first file by path wins a name; the others are named.
 * - An invalid document keeps the last valid version of its object. A document without an identity keeps all objects from its file,
 *   and so does a file without documents: a deleted key is revoked permanently, so a likely accident deletes nothing.
 * - An object whose document or file was deleted is deleted, unless the folder has no manifest left.
 * @param files in any order
 * @param present all stored objects of the kinds that manifests may have
 */
export async function decideManifestChanges(
  files: readonly ManifestFile[],
  present: readonly KubeObject[],
  options: ManifestOptions = {},
): Promise<ManifestChanges> {
  const { kinds = manifestKinds(), folder = '', pause = async () => undefined } = options
  const known = new Map(present.map((object) => [idOf(object), object]))
  const { claims, complaints } = claimNames(files.toSorted((a, b) => (a.path < b.path ? -1 : 1)))
  const checked: (ManifestWrite | Complaint | undefined)[] = []
  for (const [id, claim] of claims) {
    checked.push(check(claim, known.get(id), { kinds, folder }))
    await pause()
  }
  const unclaimed = present.filter((object) => !claims.has(idOf(object)))
  const hasManifests = [...claims.values()].some(({ document }) => kinds.has(document.kind))
  const left = decideRemovals(files, unclaimed, options, hasManifests)
  const refused = checked.filter((one) => one !== undefined && 'line' in one)
  return {
    writes: checked.filter((one) => one !== undefined && 'object' in one),
    removals: left.removals,
    complaints: [...complaints, ...left.complaints, ...refused],
  }
}

function claimNames(files: readonly ManifestFile[]): { claims: Map<string, Claim>; complaints: Complaint[] } {
  const claims = new Map<string, Claim>()
  const complaints: Complaint[] = []
  for (const { path, documents } of files) {
    for (const document of documents) {
      const claim = { path, document }
      const first = claims.get(document.id ?? '')
      if (document.id === undefined) complaints.push(complaint(claim, document.error, 'objects from this file stay in force'))
      else if (first === undefined) claims.set(document.id, claim)
      else complaints.push(complaint(claim, takenName(first, path)))
    }
  }
  return { claims, complaints }
}

function takenName({ path, document }: Claim, own: string): ManifestError {
  const place = `${document.number} of ${path === own ? 'this file' : path}`
  return { field: 'metadata.name', reason: `is the name of ${place} too, which is in force`, remedy: 'rename or remove one of the two' }
}

/** Checks a document with a name. @returns its write, the reason against it, or undefined while the former object of the name is being deleted */
function check(
  claim: Claim,
  before: KubeObject | undefined,
  { kinds, folder }: { kinds: ManifestKinds; folder: string },
): ManifestWrite | Complaint | undefined {
  const { path, document } = claim
  const kind = kinds.get(document.kind)
  if (kind === undefined) return complaint(claim, unusedKind(document, [...kinds.values()]))
  if (before?.metadata.deletionTimestamp !== undefined) return undefined
  if (before !== undefined && kind.resource === secrets && originOf(before) === undefined) return complaint(claim, NOT_OURS)
  const checked = kind.check(document.value, before)
  if (!checked.ok) return invalid(claim, checked.errors, before !== undefined)
  const annotations = { ...checked.object.metadata.annotations, [MANIFEST_ANNOTATION]: path, [FOLDER_ANNOTATION]: folder }
  const object = { ...checked.object, metadata: { ...checked.object.metadata, annotations } }
  return { resource: kind.resource, object, before }
}

const NOT_OURS: ManifestError = { field: 'metadata.name', reason: 'is a Secret of the operator', remedy: 'choose another name' }

function invalid(claim: Claim, [error, ...more]: readonly ManifestError[], hasLastValid: boolean): Complaint {
  const fields = [...new Set(more.map(({ field }) => field))].join(', ')
  const rest = more.length === 0 ? '' : `${more.length} more in ${fields}; `
  return complaint(claim, error, rest + (hasLastValid ? 'the last valid version stays in force' : 'it is not in force'))
}

/** An unknown kind is a typing mistake; a known one is used only in a cluster. */
function unusedKind({ kind, value }: ManifestDocument, kinds: readonly ManifestKind[]): ManifestError {
  const shown = shownText(kind) ?? 'this kind'
  const names = kinds.map(({ resource }) => resource.kind)
  const near = nearest(kind, names)
  const { apiVersion } = value as { readonly apiVersion?: unknown } // an object, since it has a kind
  const isOurs = String(apiVersion).startsWith(`${API_GROUP}/`)
  if (near === undefined && !isOurs)
    return { field: 'kind', reason: `${shown} is not used without a cluster`, remedy: 'remove the document' }
  const own = kinds.filter(({ resource }) => resource.group === API_GROUP).map(({ resource }) => resource.kind)
  return {
    field: 'kind',
    reason: `${shown} is not known`,
    remedy: near === undefined ? `use ${own.slice(0, -1).join(', ')} or ${own.at(-1)}` : `did you mean ${near}?`,
  }
}

const UNNAMED: ManifestError = { field: 'metadata.name', reason: 'is missing', remedy: 'write a name below metadata' }

function complaint({ path, document }: Claim, error: ManifestError = UNNAMED, consequence?: string): Complaint {
  const subject = [document.placeOf(error.field), document.title, error.field].filter((part) => part !== '').join(': ')
  const effect = consequence === undefined ? '' : ` (${consequence})`
  return { path, line: `${subject}: ${error.reason}; ${error.remedy}${effect}` }
}

/** A stored object from a folder that no document claims. */
interface Unclaimed {
  readonly object: KubeObject
  readonly path: string
  readonly folder: string
}

/**
 * @param hasManifests whether the folder has at least one manifest with an identity
 * @returns the objects to delete, and one line for each group of objects that stay although their manifests are missing
 */
function decideRemovals(
  files: readonly ManifestFile[],
  unclaimed: readonly KubeObject[],
  { kinds = manifestKinds(), folder = '', shownFolder = folder, prunesAll = false }: ManifestOptions,
  hasManifests: boolean,
): Pick<ManifestChanges, 'removals' | 'complaints'> {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const fateOf = (one: Unclaimed): 'FormerFolder' | 'UnreadFile' | 'EmptyFolder' | 'Removed' => {
    if (one.folder !== folder && !prunesAll) return 'FormerFolder'
    if (one.folder === folder && mayHoldMore(byPath.get(one.path))) return 'UnreadFile'
    return hasManifests || prunesAll ? 'Removed' : 'EmptyFolder'
  }
  const candidates = unclaimed.flatMap((object): Unclaimed[] => {
    const origin = originOf(object)
    return origin === undefined || object.metadata.deletionTimestamp !== undefined ? [] : [{ object, ...origin }]
  })
  const { FormerFolder = [], UnreadFile = [], EmptyFolder = [], Removed = [] } = Object.groupBy(candidates, fateOf)
  const removals = Removed.flatMap(({ object, path, folder: of }): ManifestRemoval[] => {
    const resource = kinds.get(object.kind)?.resource
    return resource ? [{ resource, ref: refOf(object), path, isFileThere: of === folder && byPath.has(path) }] : []
  })
  const empty = files.filter(({ documents }) => documents.length === 0).map(({ path }) => emptyFile(path, UnreadFile))
  const emptyFolder = EmptyFolder.length === 0 ? [] : [emptyFolderLine(shownFolder, EmptyFolder)]
  return { removals, complaints: [...empty, ...emptyFolder, ...formerFolders(FormerFolder)] }
}

/** Whether a file may contain more objects than could be read. */
function mayHoldMore(file: ManifestFile | undefined): boolean {
  return file !== undefined && (file.documents.length === 0 || file.documents.some(({ id }) => id === undefined))
}

function emptyFile(path: string, kept: readonly Unclaimed[]): Complaint {
  const objects = kept.filter((one) => one.path === path)
  const effect = objects.length === 0 ? 'write a manifest' : `${stay(objects)}; restore the manifest`
  const rest = objects.length === 0 ? '' : ' to delete its objects'
  return { path, line: `${path}: the file holds no manifest; ${effect}, or delete the file${rest}` }
}

function emptyFolderLine(path: string, missing: readonly Unclaimed[]): Complaint {
  const remedy = 'restore the manifests, or set PRUNE_ALL=true to delete all objects from them'
  return { path, line: `${path}: the folder holds no manifest; ${stay(missing)}; ${remedy}` }
}

function formerFolders(objects: readonly Unclaimed[]): readonly Complaint[] {
  const remedy = 'set MANIFESTS to it again, or set PRUNE_ALL=true to delete the objects from it'
  return [...Map.groupBy(objects, ({ folder }) => folder)].map(([path, own]) => ({
    path,
    line: `${path}: MANIFESTS named this folder before; ${stay(own)}; ${remedy}`,
  }))
}

/** `ApiKey default/a and ApiKey default/b stay in force`. */
function stay(objects: readonly Unclaimed[]): string {
  const names = objects.map(({ object }) => `${object.kind} ${shownRef(refOf(object))}`)
  const shown = names.length > MAX_NAMES ? [...names.slice(0, MAX_NAMES), `${names.length - MAX_NAMES} more`] : names
  const list = shown.length === 1 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
  return `${list} ${names.length === 1 ? 'stays' : 'stay'} in force`
}

/** File and folder of an object's manifest. @returns undefined for an object that is not from a folder */
export function originOf({ metadata: { annotations = {} } }: KubeObject): { readonly path: string; readonly folder: string } | undefined {
  const path = annotations[MANIFEST_ANNOTATION]
  return path === undefined ? undefined : { path, folder: annotations[FOLDER_ANNOTATION] ?? '' }
}

function idOf(object: KubeObject): string {
  return objectId(object.kind, object.metadata.namespace ?? '', object.metadata.name)
}
