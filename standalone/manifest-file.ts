import { parseAllDocuments } from 'yaml'
import type { ManifestError } from '../operator/api/manifest-error.ts'
import { type ManifestKinds, manifestKinds } from './manifest-kinds.ts'

/** One document of a manifest file, as far as it can be read before it is checked. */
export interface ManifestDocument {
  /** How people find it: `ApiKey default/bot`, or `document 2`. */
  readonly title: string
  /** `kind/namespace/name`; undefined when the document does not say which object it is. */
  readonly id: string | undefined
  readonly kind: string
  readonly value: unknown
  /** Error of the parser; nothing else of the document is read then. */
  readonly error: ManifestError | undefined
}

/** A file of the folder. Pure data: read once, and checked at every change of the store. */
export interface ManifestFile {
  /** Relative to the folder; decides who wins a name. */
  readonly path: string
  readonly documents: readonly ManifestDocument[]
}

/** Reads YAML (JSON is YAML too) with any number of documents. Never throws: what cannot be read is a document with an error. */
export function readManifestFile(path: string, text: string, kinds: ManifestKinds = manifestKinds()): ManifestFile {
  const parsed = parseAllDocuments(text, { prettyErrors: false, logLevel: 'silent' })
  const documents = Array.isArray(parsed) ? parsed : []
  return { path, documents: documents.flatMap((document, index) => readDocument(document, index + 1, kinds)) }
}

/** A file that is there and cannot be opened: its objects stay as they are. */
export function unreadableManifestFile(path: string, reason: string): ManifestFile {
  const error = { field: 'file', reason, remedy: 'make it readable for this user' }
  return { path, documents: [{ title: 'file', id: undefined, kind: '', value: undefined, error }] }
}

type YamlDocument = ReturnType<typeof parseAllDocuments>[number]

function readDocument(document: YamlDocument, count: number, kinds: ManifestKinds): readonly ManifestDocument[] {
  const title = `document ${count}`
  const parseError = document.errors[0]
  if (parseError !== undefined) {
    const error = { field: `character ${parseError.pos[0]}`, reason: `is no YAML: ${parseError.message}`, remedy: 'correct the syntax' }
    return [{ title, id: undefined, kind: '', value: undefined, error }]
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 })
    return value === null || value === undefined ? [] : [identified(value, title, kinds)]
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'cannot be read'
    return [{ title, id: undefined, kind: '', value: undefined, error: { field: 'document', reason, remedy: 'write it without aliases' } }]
  }
}

function identified(value: unknown, title: string, kinds: ManifestKinds): ManifestDocument {
  const kind = textAt(value, 'kind') ?? ''
  const metadata = fieldOf(value, 'metadata')
  const name = textAt(metadata, 'name')
  if (kind === '' || name === undefined) return { title, id: undefined, kind, value, error: undefined }
  const namespace = kinds.get(kind)?.resource.namespaced === false ? '' : (textAt(metadata, 'namespace') ?? 'default')
  return {
    title: `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`,
    id: objectId(kind, namespace, name),
    kind,
    value,
    error: undefined,
  }
}

/** Identity of an object across files and the store. */
export function objectId(kind: string, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Object.entries(value).find(([key]) => key === name)?.[1] : undefined
}

function textAt(value: unknown, name: string): string | undefined {
  const field = fieldOf(value, name)
  return typeof field === 'string' && field !== '' ? field : undefined
}
