import { parseAllDocuments } from 'yaml'
import type { Fault } from '../operator/api/rule.ts'

/** One document of a manifest file, as far as it can be told apart before it is judged. */
export interface ManifestDocument {
  /** How people find it: `ApiKey default/bot`, or `document 2`. */
  readonly title: string
  /** `kind/namespace/name`; undefined when the document does not say which object it is. */
  readonly id: string | undefined
  readonly kind: string
  readonly value: unknown
  /** What the parser found; nothing else is looked at then. */
  readonly fault: Fault | undefined
}

/** A file of the folder. Pure data: what is read once and judged at every change of the world. */
export interface ManifestFile {
  /** Relative to the folder; decides who wins a name. */
  readonly path: string
  readonly documents: readonly ManifestDocument[]
}

/** Reads YAML (JSON is YAML too) with any number of documents. Never throws: what cannot be read is a document with a fault. */
export function readManifestFile(path: string, text: string): ManifestFile {
  const parsed = parseAllDocuments(text, { prettyErrors: false, logLevel: 'silent' })
  const documents = Array.isArray(parsed) ? parsed : []
  return { path, documents: documents.flatMap((document, index) => readDocument(document, index + 1)) }
}

/** A file that is there and cannot be opened: its objects stay as they are. */
export function unreadableManifestFile(path: string, reason: string): ManifestFile {
  const fault = { field: 'file', reason, cure: 'make it readable for this user' }
  return { path, documents: [{ title: 'file', id: undefined, kind: '', value: undefined, fault }] }
}

type YamlDocument = ReturnType<typeof parseAllDocuments>[number]

function readDocument(document: YamlDocument, count: number): readonly ManifestDocument[] {
  const title = `document ${count}`
  const error = document.errors[0]
  if (error !== undefined) {
    const fault = { field: `character ${error.pos[0]}`, reason: `is no YAML: ${error.message}`, cure: 'correct the syntax' }
    return [{ title, id: undefined, kind: '', value: undefined, fault }]
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 })
    return value === null || value === undefined ? [] : [identified(value, title)]
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'cannot be read'
    return [{ title, id: undefined, kind: '', value: undefined, fault: { field: 'document', reason, cure: 'write it without aliases' } }]
  }
}

function identified(value: unknown, title: string): ManifestDocument {
  const kind = textAt(value, 'kind') ?? ''
  const metadata = fieldOf(value, 'metadata')
  const name = textAt(metadata, 'name')
  if (kind === '' || name === undefined) return { title, id: undefined, kind, value, fault: undefined }
  const namespace = kind === 'Namespace' ? '' : (textAt(metadata, 'namespace') ?? 'default')
  return {
    title: `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`,
    id: objectId(kind, namespace, name),
    kind,
    value,
    fault: undefined,
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
