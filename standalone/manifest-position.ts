/** Finds the line and column of a field in the text of a file. */
import { isMap, isScalar, isSeq, LineCounter, parseAllDocuments, type ParsedNode } from 'yaml'
import type { Position } from './manifest-text.ts'

/** A larger document or item is not parsed again to find a position: that would stop all calls for more than a tenth of a second. */
const MAX_TEXT = 131_072

/** Position of a document, or of an item of a `kind: List`, in its file: offsets in UTF-16 units. */
export interface DocumentPlace {
  readonly start: number
  readonly end: number
}

/** A field as errors name it: `spec.backends[0].url`. */
export type Locate = (place: DocumentPlace, field: string) => Position | undefined

/**
 * Finds positions in one text. Parses only the document in question again.
 * @returns for a missing field: the position of the object that should have the field
 */
export function positionsIn(text: string): Locate {
  let lines: LineCounter | undefined
  return ({ start, end }, field) => {
    if (end - start > MAX_TEXT) return undefined
    lines ??= linesOf(text)
    const indent = lines.linePos(start).col - 1 // the lines of an item of a List are indented
    const [document] = parseAllDocuments(' '.repeat(indent) + text.slice(start, end), { prettyErrors: false, logLevel: 'silent' })
    if (!document?.contents) return undefined
    const { line, col } = lines.linePos(start - indent + offsetOf(document.contents, field))
    return { line, column: col }
  }
}

function linesOf(text: string): LineCounter {
  const lines = new LineCounter()
  lines.addNewLine(0)
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1)
  return lines
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
