/** JSON whose numbers stay text: money must not pass through a binary float. */

/** Any JSON value; numbers are the text in the file. */
export type ExactJson = string | boolean | null | readonly ExactJson[] | { readonly [field: string]: ExactJson }

interface SourceText {
  readonly source?: string
}

/** The third argument of a reviver, which TypeScript does not know yet: the text of a value (ECMA-262, JSON.parse source text access). */
type Reviver = (this: unknown, key: string, value: unknown, context?: SourceText) => unknown

/** @throws SyntaxError if it is not JSON */
export function parseExactJson(text: string): ExactJson {
  const keepText: Reviver = (_key, value, context) => (typeof value === 'number' ? (context?.source ?? String(value)) : value)
  return JSON.parse(text, keepText) as ExactJson
}
