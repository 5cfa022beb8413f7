/** Explains, with a position, why a document of a file cannot be read. Never shows a value of a Secret. */
import { isAlias, isNode, visit, type Document, type YAMLError } from 'yaml'
import { type ManifestError, shownText } from '#api/manifest-error.ts'

/** An error and its position in the text. */
export interface PlacedError {
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

/** @returns the values of a document, or the first error */
export function readValue(document: Document, text: string): { readonly value: unknown } | PlacedError {
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
