/**
 * Decides which objects are deleted because their manifest was deleted. A deleted key is revoked permanently, so a likely accident deletes
 * nothing: an empty file, an empty folder, another folder.
 */
import { refKey, refOf, type KubeObject, type ObjectRef, type Resource } from '#kube/port.ts'
import type { ManifestFile } from './manifest-file.ts'
import { originOf, type Origin } from './manifest-origin.ts'

/** A problem that a person must fix. */
export interface Complaint {
  /** The file or the folder with the problem. */
  readonly path: string
  readonly line: string
}

/** An object to delete. */
export interface ManifestRemoval {
  readonly resource: Resource
  readonly ref: ObjectRef
  /** File of its former manifest. */
  readonly path: string
  /** Whether the file still exists: a slow writer may be about to write the document again. */
  readonly isFileThere: boolean
}

/** The inputs of the comparison. */
export interface RemovalInput {
  readonly files: readonly ManifestFile[]
  readonly present: readonly KubeObject[]
  readonly isClaimed: (object: KubeObject) => boolean
  /** Whether the folder has at least one manifest with an identity. */
  readonly hasManifests: boolean
  readonly resourceOf: (object: KubeObject) => Resource | undefined
  /** Absolute path. */
  readonly folder: string
  readonly shownFolder: string
  readonly prunesAll: boolean
}

interface Unclaimed {
  readonly object: KubeObject
  readonly origin: Origin
}

/** Maximum number of names in a line. */
const MOST_NAMES = 5

/** @returns the objects to delete, and one line for each group of objects that stay although their manifests are missing */
export function decideRemovals(input: RemovalInput): {
  readonly removals: readonly ManifestRemoval[]
  readonly complaints: readonly Complaint[]
} {
  const unclaimed = input.present.flatMap((object): Unclaimed[] => {
    const origin = originOf(object)
    const isCandidate = origin !== undefined && object.metadata.deletionTimestamp === undefined && !input.isClaimed(object)
    return isCandidate ? [{ object, origin }] : []
  })
  const files = new Map(input.files.map((file) => [file.path, file]))
  const own = unclaimed.filter(({ origin }) => isOwn(origin, input))
  const kept = own.filter(({ origin }) => isOpaque(files.get(origin.path)))
  const missing = own.filter(({ origin }) => !isOpaque(files.get(origin.path)))
  const isDeleted = input.hasManifests || input.prunesAll
  return {
    removals: (isDeleted ? missing : []).flatMap((one) => toRemoval(one, files, input)),
    complaints: [
      ...input.files.filter(({ documents }) => documents.length === 0).map(({ path }) => emptyFile(path, kept)),
      ...(isDeleted || missing.length === 0 ? [] : [emptyFolder(input, missing)]),
      ...otherFolders(unclaimed.filter(({ origin }) => !isOwn(origin, input))),
    ],
  }
}

function isOwn({ folder }: Origin, input: RemovalInput): boolean {
  return folder === undefined || folder === input.folder || input.prunesAll
}

/** Whether a file may contain more objects than could be read. */
function isOpaque(file: ManifestFile | undefined): boolean {
  return file !== undefined && (file.documents.length === 0 || file.documents.some(({ id }) => id === undefined))
}

function toRemoval({ object, origin }: Unclaimed, files: ReadonlyMap<string, ManifestFile>, input: RemovalInput): ManifestRemoval[] {
  const resource = input.resourceOf(object)
  const isFileThere = files.has(origin.path) && (origin.folder ?? input.folder) === input.folder
  return resource === undefined ? [] : [{ resource, ref: refOf(object), path: origin.path, isFileThere }]
}

function emptyFile(path: string, kept: readonly Unclaimed[]): Complaint {
  const objects = kept.filter(({ origin }) => origin.path === path)
  const rest =
    objects.length === 0
      ? 'write a manifest, or delete the file'
      : `${stay(objects)}; restore the manifest, or delete the file to delete its objects`
  return { path, line: `${path}: the file holds no manifest; ${rest}` }
}

function emptyFolder({ shownFolder }: RemovalInput, missing: readonly Unclaimed[]): Complaint {
  const remedy = 'restore the manifests, or set PRUNE_ALL=true to delete all objects from them'
  return { path: shownFolder, line: `${shownFolder}: the folder holds no manifest; ${stay(missing)}; ${remedy}` }
}

function otherFolders(unclaimed: readonly Unclaimed[]): readonly Complaint[] {
  return [...Map.groupBy(unclaimed, ({ origin }) => origin.folder ?? '')].map(([folder, objects]) => ({
    path: folder,
    line: `${folder}: MANIFESTS named this folder before; ${stay(objects)}; set MANIFESTS to it again, or set PRUNE_ALL=true to delete the objects from it`,
  }))
}

/** `ApiKey default/a and ApiKey default/b stay in force`. */
function stay(objects: readonly Unclaimed[]): string {
  const names = objects.map(({ object }) => `${object.kind} ${refKey(refOf(object))}`)
  const more = names.length > MOST_NAMES ? [`${names.length - MOST_NAMES} more`] : []
  const shown = [...names.slice(0, MOST_NAMES), ...more]
  const list = shown.length === 1 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
  return `${list} ${names.length === 1 ? 'stays' : 'stay'} in force`
}
