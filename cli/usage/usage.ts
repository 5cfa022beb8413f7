/** `headgate usage ACCOUNT`: what the keys of an account have used, as a table, CSV or JSON. */
import { z } from 'zod'
import {
  ACCESS_HELP,
  ACCESS_OPTIONS,
  type AccessSurroundings,
  accessOf,
  askOperator,
  type OperatorAccess,
  readAnswer,
} from '../access/operator-answer.ts'
import { CommandLineError, HELP_OPTION, oneAccount, parsedArgs, quoted } from '../command-line.ts'
import { tableOf } from '../table.ts'

export const USAGE_HELP = `Usage: headgate usage ACCOUNT --service-account NAME [--from DAY] [--to DAY] [--by GROUPS] [--output FORMAT]

Shows what the keys of an account have used: requests, tokens, cost, failures and refusals. Days are UTC; days older than 35 days are part of
their month.

In a cluster it runs kubectl: for a token of the ServiceAccount, whose rights count (verb get on accounts/usage of headgate.dev), and to reach
the operator. With --url it runs nothing, and sends the token of the variable HEADGATE_USAGE_TOKEN, if there is one.

Options:
      --from DAY             first day, YYYY-MM-DD (default: 30 days)
      --to DAY               last day (default: today)
      --by GROUPS            one row for each of these: day, model, key (default: day,model,key)
  -o, --output FORMAT        table, csv or json (default: table)
${ACCESS_HELP}
  -h, --help                 print this text

Exit codes: 0 shown; 1 it cannot be read; 2 the command line is wrong.

Example:
  headgate usage acme --service-account billing --from 2026-11-01 --by model -o csv
`

const OPTIONS = {
  from: { type: 'string' },
  to: { type: 'string' },
  by: { type: 'string' },
  output: { type: 'string', short: 'o', default: 'table' },
  ...ACCESS_OPTIONS,
  ...HELP_OPTION,
} as const

const FORMATS = ['table', 'csv', 'json'] as const
export type Format = (typeof FORMATS)[number]

export interface UsageCommand {
  readonly account: string
  readonly query: URLSearchParams
  readonly format: Format
  readonly access: OperatorAccess
}

/** @param args behind `usage` @returns the command, or the text of help @throws CommandLineError */
export function usageCommand(args: readonly string[]): UsageCommand | string {
  const { values, positionals } = parsedArgs(args, OPTIONS, 'headgate usage')
  if (values.help) return USAGE_HELP
  const account = oneAccount(positionals, 'headgate usage')
  const format = formatOf(values.output)
  const query = new URLSearchParams({ format: format === 'csv' ? 'csv' : 'json' })
  for (const name of ['from', 'to', 'by'] as const) if (values[name] !== undefined) query.set(name, values[name])
  return { account, query, format, access: accessOf(values, 'accounts/usage') }
}

/** @throws CommandLineError */
export function formatOf(output: string): Format {
  const format = FORMATS.find((one) => one === output)
  if (format === undefined) throw new CommandLineError(`--output ${quoted(output)}: use table, csv or json`)
  return format
}

/** @throws Unusable */
export async function showUsage({ account, query, format, access }: UsageCommand, around: AccessSurroundings): Promise<void> {
  const text = await askOperator(`/usage/v1/accounts/${account}?${query.toString()}`, access, around)
  if (format !== 'table') return around.print(text)
  const found = readAnswer(answer, text)
  around.print(usageTable(found.rows))
  around.report(`${found.account}, ${found.from} to ${found.to}, ${found.asOf === null ? 'never used' : `as of ${found.asOf}`}\n`)
  if (found.incomplete.length > 0) around.report(`incomplete: Redis lost up to 10 s of counts on ${found.incomplete.join(', ')}\n`)
}

const answer = z.object({
  account: z.string(),
  from: z.string(),
  to: z.string(),
  asOf: z.string().nullable(),
  incomplete: z.array(z.string()),
  rows: z.array(z.record(z.string(), z.union([z.string(), z.number()]))),
})

/** Columns whose values are all 0 are left out, except for requests. */
function usageTable(rows: readonly Readonly<Record<string, string | number>>[]): string {
  const columns = Object.keys(rows[0] ?? {}).filter(
    (column) => column !== 'keyUID' && (column === 'requests' || rows.some((row) => !isZero(row[column]))),
  )
  return columns.length === 0 ? 'no usage\n' : tableOf(columns, rows)
}

function isZero(value: string | number | undefined): boolean {
  return value === 0 || value === '0.00'
}
