/** CSV as PostgreSQL writes it (RFC 4180): quotes around a field, doubled within it. Pure. */

/** @returns one object per row, by the names of the first row; `undefined` for text whose quotes do not match */
export function csvObjects(text: string): readonly Readonly<Record<string, string>>[] | undefined {
  const rows = rowsOf(text.replace(/^\uFEFF/, ''))
  const [names = [], ...rest] = rows ?? []
  return rows && rest.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? ''])))
}

const FIELD = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y

function rowsOf(text: string): string[][] | undefined {
  const rows: string[][] = []
  let row: string[] = []
  FIELD.lastIndex = 0
  while (FIELD.lastIndex < text.length) {
    const found = FIELD.exec(text)
    if (found === null) return undefined
    const [, quoted, plain = '', end] = found
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === ',' && FIELD.lastIndex < text.length) continue
    if (end === ',') row.push('')
    rows.push(row)
    row = []
  }
  return rows
}
