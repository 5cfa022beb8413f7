import { isMap, isNode, isSeq, parseAllDocuments, type Document } from 'yaml'
import { type ManifestError, shownText, shownValue, typeOf } from '#api/manifest-error.ts'
import { type ManifestKinds, manifestKinds } from './manifest-kinds.ts'
import type { DocumentPlace } from './manifest-position.ts'
import { positionAt, type Position, type UnreadableFile } from './manifest-text.ts'
import { aliasError, syntaxError, valueOf, type YamlError } from './yaml-errors.ts'

/** One document of a manifest file before its check. */
export interface ManifestDocument {
  /** Name in messages: `ApiKey default/bot`, or `document 2`. */
  readonly title: string
  /** Position in the file: `document 2`. */
  readonly number: string
  readonly place: DocumentPlace
  /** `kind/namespace/name`; undefined for a document without an identity. */
  readonly id: string | undefined
  readonly kind: string
  readonly value: unknown
  /** Why the document cannot be read or has no identity; the rest of the document is then not read. */
  readonly error: ManifestError | undefined
  /** Position of the error, if the parser knows it. */
  readonly position: Position | undefined
}

/** A file of the folder. Pure data: read once, and checked at every change of the store. */
export interface ManifestFile {
  /** Relative to the folder; the first path wins a name. */
  readonly path: string
  readonly text: string
  /** Empty for an empty file and for one with only comments. */
  readonly documents: readonly ManifestDocument[]
}

/** Reads YAML (JSON is YAML too) with any number of documents. Never throws: unreadable text becomes a document with an error. */
export function readManifestFile(path: string, text: string, kinds: ManifestKinds = manifestKinds()): ManifestFile {
  const parsed = parseAllDocuments(text, { prettyErrors: false, logLevel: 'silent' })
  const documents = Array.isArray(parsed) ? parsed : []
  return { path, text, documents: documents.flatMap((document, index) => readDocument(document, { index, text, kinds })) }
}

/** An existing but unreadable file: its objects stay unchanged. */
export function unreadableManifestFile(path: string, { error, position }: UnreadableFile): ManifestFile {
  return { path, text: '', documents: [failed({ start: 0, end: 0 }, '', error, position)] }
}

interface Source {
  readonly index: number
  readonly text: string
  readonly kinds: ManifestKinds
}

function readDocument(document: Document.Parsed, { index, text, kinds }: Source): readonly ManifestDocument[] {
  const place = placeOf(document.range)
  const number = `document ${index + 1}`
  const atOffset = ({ error, offset }: YamlError): readonly ManifestDocument[] => [failed(place, number, error, positionAt(text, offset))]
  const broken = syntaxError(document, text) ?? aliasError(document, text)
  if (broken !== undefined) return atOffset(broken)
  const read = valueOf(document)
  if ('error' in read) return atOffset(read)
  const { value } = read
  if (value === null || value === undefined) return []
  return isList(value) ? readList(value, { document, place, number }, kinds) : [identified(value, { place, number }, kinds)]
}

/** Whether a value is a List, as `kubectl get -o yaml` writes for several objects. */
function isList(value: unknown): boolean {
  return /^([A-Z][A-Za-z]*)?List$/.test(textAt(value, 'kind') ?? '')
}

interface ListSource extends Pick<ManifestDocument, 'place' | 'number'> {
  readonly document: Document.Parsed
}

function readList(value: unknown, { document, place, number }: ListSource, kinds: ManifestKinds): readonly ManifestDocument[] {
  const items = fieldOf(value, 'items')
  if (!Array.isArray(items)) {
    const error = { field: 'items', reason: 'is missing or not a list', remedy: 'write the objects of the List below items' }
    return [failed(place, number, error, undefined)]
  }
  const list = isMap(document.contents) ? document.contents.get('items', true) : undefined
  const nodes: readonly unknown[] = isSeq(list) ? list.items : []
  return items.map((item: unknown, at) => {
    const node = nodes[at]
    return identified(item, { place: isNode(node) ? placeOf(node.range) : place, number: `${number}, item ${at + 1}` }, kinds)
  })
}

/** @param range start, end of the value, end of the node */
function placeOf(range: readonly number[] | null | undefined): DocumentPlace {
  const [start = 0, , end = start] = range ?? []
  return { start, end }
}

function identified(value: unknown, where: Pick<ManifestDocument, 'place' | 'number'>, kinds: ManifestKinds): ManifestDocument {
  const kind = textAt(value, 'kind')
  const metadata = fieldOf(value, 'metadata')
  const name = textAt(metadata, 'name')
  if (kind === undefined || name === undefined) return failed(where.place, where.number, namelessError(value), undefined)
  const namespace = kinds.get(kind)?.resource.namespaced === false ? '' : (textAt(metadata, 'namespace') ?? 'default')
  return {
    ...where,
    title: [kind, [namespace, name].filter((part) => part !== '').join('/')]
      .map((part) => (shownText(part) === undefined ? '…' : part))
      .join(' '),
    id: objectId(kind, namespace, name),
    kind,
    value,
    error: undefined,
    position: undefined,
  }
}

/** The error of a document without an identity. */
function namelessError(value: unknown): ManifestError {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const remedy = Array.isArray(value) ? 'begin each object with a line --- instead of "- "' : 'write apiVersion, kind, metadata and spec'
    return { field: '', reason: `is ${typeOf(value)}, not an object`, remedy }
  }
  const kind = wrongText(value, 'kind')
  if (kind !== undefined) return { field: 'kind', ...kind }
  const metadata = fieldOf(value, 'metadata')
  const isObject = typeof metadata === 'object' && metadata !== null
  const name = isObject ? wrongText(metadata, 'name') : undefined
  return { field: 'metadata.name', ...(name ?? { reason: 'is missing', remedy: 'write a name below metadata' }) }
}

/** @returns the error of a field that must be a text; undefined for a text */
function wrongText(value: unknown, name: string): Omit<ManifestError, 'field'> | undefined {
  const field = fieldOf(value, name)
  if (field === undefined) return { reason: 'is missing', remedy: 'add it' }
  if (field === null || field === '') return { reason: 'is empty', remedy: 'write a value' }
  if (typeof field === 'string') return undefined
  const shown = shownValue(field, [name])
  const remedy = shown === undefined ? 'write a text' : `write it in quotes: "${shown}"`
  return { reason: `${shown === undefined ? '' : `${shown} `}is ${typeOf(field)}, not text`, remedy }
}

function failed(place: DocumentPlace, number: string, error: ManifestError, position: Position | undefined): ManifestDocument {
  return { title: number, number, place, id: undefined, kind: '', value: undefined, error, position }
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
