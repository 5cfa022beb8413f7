/** Rows as a table for people. */
import { plain } from '#contract/values/plain-text.ts'

type Cells = Readonly<Record<string, string | number>>

/** @param columns names of the columns, in order; `inputTokens` is shown as `INPUT TOKENS` */
export function tableOf(columns: readonly string[], rows: readonly Cells[]): string {
  const cells = [columns.map(heading), ...rows.map((row) => columns.map((column) => plain(String(row[column] ?? ''))))]
  const widths = columns.map((_, at) => cells.reduce((widest, line) => Math.max(widest, line[at]?.length ?? 0), 0))
  return cells
    .map(
      (line) =>
        `${line
          .map((text, at) => text.padEnd(widths[at] ?? 0))
          .join('   ')
          .trimEnd()}\n`,
    )
    .join('')
}

function heading(column: string): string {
  return column.replaceAll(/([A-Z])/g, ' $1').toUpperCase()
}
