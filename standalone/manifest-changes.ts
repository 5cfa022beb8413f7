/** What must change in the store so that it says what the manifests say. Pure: files and present objects in, changes and complaints out. */
import type { ManifestError } from '../operator/api/manifest-error.ts'
import { refOf, type KubeObject, type ObjectRef, type Resource } from '../operator/kube/port.ts'
import { secrets } from '../operator/kube/resources.ts'
import { objectId, type ManifestDocument, type ManifestFile } from './manifest-file.ts'
import { type ManifestKinds, manifestKinds } from './manifest-kinds.ts'

/** On every object that came from the folder: the file that holds it. What does not carry it is not ours to change or delete. */
export const MANIFEST_ANNOTATION = 'headgate.dev/manifest'

/** A wanted write; `before` undefined = create. */
export interface ManifestWrite {
  readonly resource: Resource
  readonly object: KubeObject
  readonly before: KubeObject | undefined
}

/** Everything to do, and one line for each thing that a person must fix. */
export interface ManifestChanges {
  readonly writes: readonly ManifestWrite[]
  readonly removals: ReadonlyArray<{ readonly resource: Resource; readonly ref: ObjectRef }>
  readonly complaints: readonly string[]
}

interface Claim {
  readonly path: string
  readonly document: ManifestDocument
}

type Verdict = { readonly write: ManifestWrite } | { readonly complaint: string } | undefined

/**
 * Compares the folder with the store.
 * - The first file by path wins a name; the others are named.
 * - An invalid document keeps the last good version of its object. One that does not even say which object it is keeps all that came from its file.
 * - An object whose document is gone goes.
 * @param files in any order
 * @param present all objects of the kinds that manifests may have
 * @param kinds the kinds that manifests may have
 */
export function decideManifestChanges(
  files: readonly ManifestFile[],
  present: readonly KubeObject[],
  kinds: ManifestKinds = manifestKinds(),
): ManifestChanges {
  const known = new Map(present.map((object) => [idOf(object), object]))
  const { claims, complaints, opaque } = claimNames(files)
  const verdicts = [...claims].map(([id, claim]) => check(claim, known.get(id), kinds))
  const removals = present.filter((object) => {
    const file = originOf(object)
    return file !== undefined && object.metadata.deletionTimestamp === undefined && !claims.has(idOf(object)) && !opaque.has(file)
  })
  return {
    writes: verdicts.flatMap((verdict) => (verdict !== undefined && 'write' in verdict ? [verdict.write] : [])),
    removals: removals.flatMap((object) => {
      const kind = kinds.get(object.kind)
      return kind === undefined ? [] : [{ resource: kind.resource, ref: refOf(object) }]
    }),
    complaints: [
      ...complaints,
      ...verdicts.flatMap((verdict) => (verdict !== undefined && 'complaint' in verdict ? [verdict.complaint] : [])),
    ],
  }
}

function claimNames(files: readonly ManifestFile[]): { claims: Map<string, Claim>; complaints: string[]; opaque: Set<string> } {
  const claims = new Map<string, Claim>()
  const complaints: string[] = []
  const opaque = new Set<string>()
  for (const { path, documents } of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    for (const document of documents) {
      const first = claims.get(document.id ?? '')
      if (document.id === undefined) {
        opaque.add(path)
        complaints.push(line(path, document, document.error ?? NAMELESS, 'what came from this file stays in force'))
      } else if (first === undefined) claims.set(document.id, { path, document })
      else
        complaints.push(
          line(path, document, { field: 'metadata.name', reason: `is taken by ${first.path}`, remedy: 'remove one of the two' }),
        )
    }
  }
  return { claims, complaints, opaque }
}

const NAMELESS: ManifestError = { field: 'kind, metadata.name', reason: 'is missing', remedy: 'write kind and metadata.name' }

function check({ path, document }: Claim, before: KubeObject | undefined, kinds: ManifestKinds): Verdict {
  const kind = kinds.get(document.kind)
  if (kind === undefined) return { complaint: line(path, document, USELESS) }
  const { resource } = kind
  if (before?.metadata.deletionTimestamp !== undefined) return undefined // its successor waits until it is gone
  if (before !== undefined && resource === secrets && originOf(before) === undefined) return { complaint: line(path, document, NOT_OURS) }
  const checked = kind.check(document.value, before)
  if (checked.ok) return { write: { resource, object: withOrigin(checked.object, path), before } }
  return { complaint: invalidLine(path, document, checked.errors, before !== undefined) }
}

const USELESS: ManifestError = { field: 'kind', reason: 'is not used without a cluster', remedy: 'remove the document' }
const NOT_OURS: ManifestError = { field: 'metadata.name', reason: 'is a Secret of the operator', remedy: 'choose another name' }

function invalidLine(
  path: string,
  document: ManifestDocument,
  [error = NAMELESS, ...more]: readonly ManifestError[],
  hasLastGood: boolean,
): string {
  const rest = more.length === 0 ? '' : `${more.length} more in ${more.map(({ field }) => field).join(', ')}; `
  return line(path, document, error, rest + (hasLastGood ? 'the last valid version stays in force' : 'it is not in force'))
}

function originOf(object: KubeObject): string | undefined {
  return object.metadata.annotations?.[MANIFEST_ANNOTATION]
}

function withOrigin(object: KubeObject, path: string): KubeObject {
  const annotations = { ...object.metadata.annotations, [MANIFEST_ANNOTATION]: path }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

function line(path: string, document: ManifestDocument, error: ManifestError, consequence?: string): string {
  const place = error.field === '' ? '' : `${error.field}: `
  return `${path}: ${document.title}: ${place}${error.reason}; ${error.remedy}${consequence === undefined ? '' : ` (${consequence})`}`
}

function idOf(object: KubeObject): string {
  return objectId(object.kind, object.metadata.namespace ?? '', object.metadata.name)
}
