/** Finds the line and column of a field in the text of a file. */
import { isMap, isScalar, isSeq, LineCounter, parseAllDocuments, type ParsedNode } from 'yaml'
import type { Position } from './manifest-text.ts'

/** Larger files are not parsed again to find a position. */
const MAX_TEXT = 1_048_576

/** Position of a document in its file. */
export interface DocumentPlace {
  /** Counted from 0, as the parser does. */
  readonly index: number
  /** Path of the document within a `kind: List`: `items[2]`, or ''. */
  readonly within: string
}

/** A field as errors name it: `spec.backends[0].url`. */
export type Locate = (place: DocumentPlace, field: string) => Position | undefined

/**
 * Finds positions in one text. Parses the text at the first call.
 * @returns for a missing field: the position of the object that should have the field
 */
export function positionsIn(text: string): Locate {
  let parsed: ReturnType<typeof parse> | undefined
  return ({ index, within }, field) => {
    if (text.length > MAX_TEXT) return undefined
    parsed ??= parse(text)
    const contents = parsed.documents[index]?.contents
    if (!contents) return undefined
    const { line, col } = parsed.lines.linePos(offsetOf(contents, [within, field].filter(Boolean).join('.')))
    return { line, column: col }
  }
}

function parse(text: string) {
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, logLevel: 'silent' })
  return { documents: Array.isArray(documents) ? documents : [], lines }
}

function offsetOf(root: ParsedNode, field: string): number {
  let offset = root.range[0]
  let node: ParsedNode | null = root
  let rest = field
  while (node && rest !== '') {
    const next = stepInto(node, rest)
    if (next === undefined) return offset
    ;({ offset, node, rest } = next)
  }
  return offset
}

interface Step {
  readonly offset: number
  readonly node: ParsedNode | null
  readonly rest: string
}

function stepInto(node: ParsedNode, path: string): Step | undefined {
  const [whole = '', index] = /^\[(\d+)\]\.?/.exec(path) ?? []
  if (isSeq(node)) {
    const item = index === undefined ? undefined : node.items[Number(index)]
    return item ? { offset: item.range[0], node: item, rest: path.slice(whole.length) } : undefined
  }
  if (!isMap(node)) return undefined
  const steps = node.items.flatMap(({ key, value }): Step[] => {
    const name = isScalar(key) ? String(key.value) : ''
    const rest = path.slice(name.length)
    return name !== '' && path.startsWith(name) && /^([.[]|$)/.test(rest)
      ? [{ offset: key.range[0], node: value, rest: rest.replace(/^\./, '') }]
      : []
  })
  return steps.toSorted((a, b) => a.rest.length - b.rest.length)[0] // keys of labels contain dots, so the longest match is the key
}
