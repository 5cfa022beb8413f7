/** How the parsers of model servers may read the top level of a JSON body. Written apart from the gateway's own reading. */

/** One token of JSON: punctuation, a string, or any other scalar. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g

/** The fields of the top level, each as often as it stands there: the name, and the token of its value. */
function fieldsRead(bytes: Buffer): Array<readonly [name: string, value: string]> {
  const tokens = Array.from(bytes.toString('utf8').matchAll(TOKENS), ([token]) => token)
  let depth = 0
  return tokens.flatMap((token, at) => {
    if ('}]'.includes(token)) depth--
    if ('{['.includes(token)) depth++
    const isName = depth === 1 && tokens[at + 1] === ':' && token.startsWith('"')
    return isName ? [[JSON.parse(token) as string, tokens[at + 2] ?? ''] as const] : []
  })
}

/** Every model that some parser could take from a body: that of the first or last key, whatever its case, cut at a NUL. */
export function modelsRead(bytes: Buffer): unknown[] {
  return fieldsRead(bytes).flatMap(([name, value]) => (name.split('\u0000')[0]?.toLowerCase() === 'model' ? [scalar(value)] : []))
}

/** The names of all fields of the top level. */
export function namesRead(bytes: Buffer): string[] {
  return fieldsRead(bytes).map(([name]) => name)
}

const scalar = (token: string): unknown => (token.startsWith('"') ? JSON.parse(token) : token)
