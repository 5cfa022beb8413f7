/** `headgate ledger ACCOUNT`: every movement of the balance of an account. The amounts add up to the balance. */
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
import { CommandLineError, HELP_OPTION, oneAccount, parsedArgs } from '../command-line.ts'
import { tableOf } from '../table.ts'
import { type Format, formatOf } from '../usage/usage.ts'

export const LEDGER_HELP = `Usage: headgate ledger ACCOUNT --service-account NAME [--csv | --output FORMAT]
       headgate ledger ACCOUNT --local [--csv | --output FORMAT]

Shows every movement of the balance of an account, oldest first: each Credit that counts, also one whose object was deleted, and the spend of each
UTC day; days older than 35 days are part of their month. One row has the spend that belongs to no day. The amounts add up to the balance.

In a cluster it runs kubectl: for a token of the ServiceAccount, whose rights count (verb get on accounts/ledger of headgate.dev), and to reach
the operator. With --url it runs nothing, and sends the token of the variable HEADGATE_USAGE_TOKEN, if there is one.

Options:
      --csv                  the same as --output csv
  -o, --output FORMAT        table, csv or json (default: table)
${ACCESS_HELP}
  -h, --help                 print this text

Exit codes: 0 shown; 1 it cannot be read; 2 the command line is wrong.

Example:
  headgate ledger acme --service-account billing --csv > acme.csv
`

const OPTIONS = {
  csv: { type: 'boolean', default: false },
  output: { type: 'string', short: 'o' },
  ...ACCESS_OPTIONS,
  ...HELP_OPTION,
} as const

export interface LedgerCommand {
  readonly account: string
  readonly format: Format
  readonly access: OperatorAccess
}

/** @param args behind `ledger` @returns the command, or the text of help @throws CommandLineError */
export function ledgerCommand(args: readonly string[]): LedgerCommand | string {
  const { values, positionals } = parsedArgs(args, OPTIONS, 'headgate ledger')
  if (values.help) return LEDGER_HELP
  const account = oneAccount(positionals, 'headgate ledger')
  const { csv, output } = values
  if (csv && output !== undefined && output !== 'csv') throw new CommandLineError('--csv and --output are both given; leave one out')
  return { account, format: csv ? 'csv' : formatOf(output ?? 'table'), access: accessOf(values, 'accounts/ledger') }
}

/** @throws Unusable */
export async function showLedger({ account, format, access }: LedgerCommand, around: AccessSurroundings): Promise<void> {
  const text = await askOperator(`/usage/v1/accounts/${account}/ledger?format=${format === 'csv' ? 'csv' : 'json'}`, access, around)
  if (format !== 'table') return around.print(text)
  const { currency, balance, credits, spent, asOf, incomplete, rows } = readAnswer(answer, text)
  around.print(rows.length === 0 ? 'no movements\n' : tableOf(COLUMNS, rows))
  around.report(`${account}: ${balance} ${currency}, which is ${credits} of Credits without ${spent} spent, as of ${asOf}\n`)
  if (incomplete.length > 0)
    around.report(
      `the spend of ${incomplete.join(', ')} is itemised in part, because Redis lost up to 10 s of counts; the balance has all of it\n`,
    )
}

const COLUMNS = ['time', 'type', 'id', 'reference', 'amount'] as const

const answer = z.object({
  currency: z.string(),
  asOf: z.string(),
  balance: z.string(),
  credits: z.string(),
  spent: z.string(),
  incomplete: z.array(z.string()),
  rows: z.array(z.object({ time: z.string(), type: z.string(), id: z.string(), reference: z.string(), amount: z.string() })),
})
