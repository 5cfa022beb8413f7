/** Parses a manifest file into documents, and finds the position of an error in it. A file that cannot be parsed becomes documents with an error. */
import { Composer, isAlias, isMap, isNode, isScalar, LineCounter, parseDocument, Parser, visit, type Document, type YAMLError } from 'yaml'
import { z } from 'zod'
import { type ManifestError, shownText } from '#api/manifest-error.ts'
import { schemaErrors } from '#api/schema-errors.ts'
import { type ManifestKinds, manifestKinds } from './manifest-kinds.ts'

/** One document of a file, or one item of a `kind: List`, before its check. */
export interface ManifestDocument {
  /** Name in messages: `ApiKey default/bot`, or `document 2`. */
  readonly title: string
  /** Position in the file: `document 2`. */
  readonly number: string
  /** `kind/namespace/name`; undefined for a document that cannot be read or has no identity. */
  readonly id: string | undefined
  readonly kind: string
  readonly value: unknown
  /** Why the document has no identity. */
  readonly error: ManifestError | undefined
  /** Place of a field, or of the error: `a.yaml:3:5`. For a missing field, the place of the object that should have the field. */
  readonly placeOf: (field: string) => string
}

/** A file of the folder, read once, and checked at every change. */
export interface ManifestFile {
  /** Relative to the folder; the first path wins a name. */
  readonly path: string
  /** Empty for an empty file and for one with only comments. */
  readonly documents: readonly ManifestDocument[]
}

const identity = z.object({ kind: z.string().min(1), metadata: z.object({ name: z.string().min(1), namespace: z.string().optional() }) })

/**
 * Reads YAML (JSON is YAML too) with any number of documents.
 * @param pause called after each document: thousands of documents take seconds
 */
export async function parseManifestFile(
  path: string,
  text: string,
  { kinds = manifestKinds(), pause = async () => undefined }: { kinds?: ManifestKinds; pause?: () => Promise<void> } = {},
): Promise<ManifestFile> {
  const lines = new LineCounter()
  const file: FileText = { path, text, lines, kinds }
  const documents: ManifestDocument[] = []
  let number = 0
  for (const document of new Composer({ prettyErrors: false, logLevel: 'silent' }).compose(new Parser(lines.addNewLine).parse(text))) {
    documents.push(...readDocument(document, `document ${(number += 1)}`, file))
    await pause()
  }
  return { path, documents }
}

/** An existing file that cannot be read: its objects stay unchanged. @param position line and column, as in `:2:3` */
export function unreadableFile(path: string, reason: string, remedy: string, position = ''): ManifestFile {
  return { path, documents: [failed('', { field: '', reason, remedy }, () => path + position)] }
}

interface FileText {
  readonly path: string
  readonly text: string
  readonly lines: LineCounter
  readonly kinds: ManifestKinds
}

type PlaceOf = ManifestDocument['placeOf']

function readDocument(document: Document.Parsed, number: string, file: FileText): readonly ManifestDocument[] {
  const read = readValue(document, file.text)
  if ('error' in read) return [failed(number, read.error, () => placeAt(file, read.offset))]
  const { value } = read
  if (value === null || value === undefined) return []
  const placeOf = placesIn(document, file)
  if (!isList(value)) return [identified(value, number, placeOf, file.kinds)]
  if (!Array.isArray(value.items)) return [failed(number, NO_ITEMS, placeOf)]
  return value.items.map((item: unknown, at) =>
    identified(item, `${number}, item ${at + 1}`, (field) => placeOf(`items[${at}]${field === '' ? '' : `.${field}`}`), file.kinds),
  )
}

const NO_ITEMS: ManifestError = {
  field: 'items',
  reason: 'is missing or not a list',
  remedy: 'write the objects of the List below items',
}

/** Whether a value is a List, as `kubectl get -o yaml` writes for several objects. */
function isList(value: unknown): value is { readonly items?: unknown } {
  return typeof value === 'object' && value !== null && 'kind' in value && /^([A-Z][A-Za-z]*)?List$/.test(String(value.kind))
}

function identified(value: unknown, number: string, placeOf: PlaceOf, kinds: ManifestKinds): ManifestDocument {
  const parsed = identity.safeParse(value, { reportInput: true })
  if (!parsed.success) {
    const [error = NO_ITEMS] = schemaErrors(parsed.error.issues, { schema: identity, document: value })
    return failed(number, error, placeOf)
  }
  const { kind, metadata } = parsed.data
  const namespace = kinds.get(kind)?.resource.namespaced === false ? '' : metadata.namespace || 'default'
  const shown = [kind, namespace === '' ? metadata.name : `${namespace}/${metadata.name}`]
  const title = shown.map((part) => (shownText(part) === undefined ? '…' : part)).join(' ')
  return { title, number, id: objectId(kind, namespace, metadata.name), kind, value, error: undefined, placeOf }
}

function failed(number: string, error: ManifestError, placeOf: PlaceOf): ManifestDocument {
  return { title: number, number, id: undefined, kind: '', value: undefined, error, placeOf }
}

/** Identity of an object across files and the store. */
export function objectId(kind: string, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`
}

function placeAt({ path, lines }: Pick<FileText, 'path' | 'lines'>, offset: number): string {
  const { line, col } = lines.linePos(offset)
  return `${path}:${line}:${col}`
}

/** Keeps only the range of a document, because its nodes take much memory, and parses the range again for the first position. */
function placesIn(document: Document.Parsed, { path, text, lines }: FileText): PlaceOf {
  const [start, , end] = document.range
  let parsed: Document.Parsed | undefined
  return (field) => {
    parsed ??= parseDocument(text.slice(start, end), { prettyErrors: false, logLevel: 'silent' })
    const steps = field.split(/[.[\]]+/).filter((step) => step !== '')
    while (steps.length > 0 && !parsed.hasIn(steps)) steps.pop() // a missing field, or a name with dots
    return placeAt({ path, lines }, start + offsetOf(parsed, steps))
  }
}

function offsetOf(document: Document.Parsed, steps: readonly string[]): number {
  const parent = document.getIn(steps.slice(0, -1), true)
  const name = steps.at(-1)
  const pair = isMap(parent) ? parent.items.find(({ key }) => isScalar(key) && String(key.value) === name) : undefined
  const node = isNode(pair?.key) ? pair.key : document.getIn(steps, true)
  return isNode(node) ? (node.range?.[0] ?? 0) : 0
}

/** An error and its position in the text. */
interface PlacedError {
  readonly error: ManifestError
  readonly offset: number
}

/** Code and message of the parser, which are never shown, and the words in their place: reason and remedy. The first match counts. */
const WORDS: ReadonlyArray<readonly [parser: RegExp, reason: string, remedy: string]> = [
  [/end with a [\]}]/, 'a bracket is not closed, or the next line is not indented below it', 'close the bracket'],
  [/Missing closing .quote/, 'a quote is not closed', 'close the quote'],
  [/followed by map values/, 'a line has no ":" after its field', 'write the field as "key: value"'],
  [
    /block sequence may not be/i,
    'a "- " is indented unlike the list that it belongs to',
    'indent all "- " of one list by the same number of spaces',
  ],
  [/^BAD_INDENT/, 'the indentation does not fit', 'indent the fields of one object by the same number of spaces'],
  [/^TAB_AS_INDENT/, 'a tab is used for indentation', 'indent with spaces'],
  [/^DUPLICATE_KEY/, 'a field is written twice in one object', 'remove one of the two'],
  [/^BAD_SCALAR_START/, 'a value begins with a reserved character', 'write the value in quotes'],
  [/^BLOCK_AS_IMPLICIT_KEY/, 'a second ": " is in one line', 'write the value in quotes, or begin a new line'],
  [/^BLOCK_IN_FLOW/, 'a "- " or a "key:" of its own line is inside brackets', 'close the bracket before, or write the list with commas'],
  [/^MULTILINE_IMPLICIT_KEY/, 'a line has no ": " after its field', 'write the field as "key: value"'],
  [
    /^(MISSING_CHAR|UNEXPECTED_TOKEN)/,
    'a bracket, a quote, a comma or a colon is missing or too much',
    'check this line and the lines above',
  ],
  [/^BAD_DQ_ESCAPE/, 'a backslash in double quotes begins no known escape', 'write two backslashes, or use single quotes'],
  [/^NON_STRING_KEY/, 'the name of a field is not a text', 'write the name in quotes'],
  [/^RESOURCE_EXHAUSTION/, 'the document is nested too deeply', 'write it with fewer levels'],
  [/^/, 'this is not valid YAML', 'correct the syntax of this line or of the line above'],
]

/** @returns the values of a document, or the first error, which never shows a value of a Secret */
function readValue(document: Document, text: string): { readonly value: unknown } | PlacedError {
  const [first] = document.errors
  if (first !== undefined) return syntaxError(first, text)
  const star = starWithoutAnchor(document)
  if (star !== undefined) return starError(text, star)
  try {
    return { value: document.toJS({ maxAliasCount: 100 }) as unknown }
  } catch {
    const error = { field: '', reason: 'its aliases multiply the document', remedy: 'write the values in place of the aliases' }
    return { error, offset: document.range?.[0] ?? 0 }
  }
}

function syntaxError({ code, message, pos: [offset] }: YAMLError, text: string): PlacedError {
  if (code === 'BAD_ALIAS' && text[offset] === '*') return starError(text, offset)
  const [, reason = '', remedy = ''] = WORDS.find(([parser]) => parser.test(`${code} ${message}`)) ?? []
  return { error: { field: '', reason, remedy }, offset }
}

/** @returns the position of the first `*name` without an earlier `&name`: the author meant a text */
function starWithoutAnchor(document: Document): number | undefined {
  const anchors = new Set<string>()
  let found: number | undefined
  visit(document, (_, node) => {
    if (isAlias(node) && !anchors.has(node.source)) {
      found = node.range?.[0]
      return visit.BREAK
    }
    if (isNode(node) && 'anchor' in node && typeof node.anchor === 'string') anchors.add(node.anchor)
    return undefined
  })
  return found
}

/** The text behind the star is not shown if the file may hold credentials: the kind of an unreadable document is unknown. */
function starError(text: string, offset: number): PlacedError {
  const [written = '*'] = /^\*[^\s,\]}#]*/.exec(text.slice(offset, offset + 100)) ?? []
  const shown = /kind["']?\s*:\s*["']?Secret/i.test(text) ? undefined : shownText(written)
  const remedy = shown === undefined ? 'write the value that begins with * in quotes' : `write ${shown.replaceAll('"', "'")} in quotes`
  return { error: { field: '', reason: '* without quotes begins an alias of YAML', remedy }, offset }
}
