/** CSV files for spreadsheets: RFC 4180, with a header. Pure. */

/** A cell that begins like this is run as a formula by a spreadsheet. */
const FORMULA = /^[=+\-@\t\r\n]/
const NUMBER = /^-?\d+(\.\d+)?$/

/** @param rows cells by column */
export function csvOf(columns: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [columns, ...rows].map((row) => `${row.map(cellOf).join(',')}\r\n`).join('')
}

/** Quotes a text where needed, and puts an apostrophe before a text that a spreadsheet would run as a formula. */
export function cellOf(value: string | number): string {
  const text = String(value)
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
