/** `headgate usage ACCOUNT`: what the keys of an account have used, as a table, CSV or JSON. */
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { CommandLineError, quoted, Unusable } from '../command-line.ts'

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
  -n, --namespace NAME       namespace of the operator and of the ServiceAccount (default: headgate)
      --service-account NAME the ServiceAccount that reads
      --service NAME         Service of the operator's usage (default: headgate-operator-usage)
      --context NAME         context of kubectl
      --url URL              where the usage is served, for example by make run
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
  namespace: { type: 'string', short: 'n', default: 'headgate' },
  'service-account': { type: 'string' },
  service: { type: 'string', default: 'headgate-operator-usage' },
  context: { type: 'string' },
  url: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

const FORMATS = ['table', 'csv', 'json'] as const
type Format = (typeof FORMATS)[number]

/** How the operator is reached. */
export interface ClusterAccess {
  readonly namespace: string
  readonly serviceAccount: string
  readonly service: string
  readonly context: string | undefined
}

export interface UsageCommand {
  readonly account: string
  readonly query: URLSearchParams
  readonly format: Format
  readonly access: ClusterAccess | { readonly url: string }
}

/** What the command needs from outside. */
export interface UsageSurroundings {
  readonly print: (text: string) => void
  readonly report: (text: string) => void
  readonly usageToken: () => string | undefined
  /** Calls `use` with the address of the operator and a token. @throws Unusable */
  readonly reachOperator: <T>(access: ClusterAccess, use: (url: string, token: string) => Promise<T>) => Promise<T>
  readonly fetch: typeof fetch
}

const DNS_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** @param args behind `usage` @returns the command, or the text of help @throws CommandLineError */
export function usageCommand(args: readonly string[]): UsageCommand | string {
  const { values, positionals } = parsed(args)
  if (values.help) return USAGE_HELP
  const [account, ...rest] = positionals
  if (account === undefined) throw new CommandLineError('ACCOUNT is missing; headgate usage --help says more')
  if (rest.length > 0) throw new CommandLineError(`one ACCOUNT at a time; ${rest.length} more were given`)
  if (!DNS_NAME.test(account)) throw new CommandLineError(`${quoted(account)} is not the name of an Account`)
  const format = FORMATS.find((one) => one === values.output)
  if (format === undefined) throw new CommandLineError(`--output ${quoted(values.output)}: use table, csv or json`)
  const query = new URLSearchParams({ format: format === 'csv' ? 'csv' : 'json' })
  for (const name of ['from', 'to', 'by'] as const) if (values[name] !== undefined) query.set(name, values[name])
  return { account, query, format, access: accessOf(values) }
}

type Values = ReturnType<typeof parsed>['values']

function accessOf({ url, namespace, service, context, 'service-account': serviceAccount }: Values): UsageCommand['access'] {
  if (url !== undefined) {
    if (!URL.canParse(url) || !/^https?:/.test(url)) throw new CommandLineError(`--url ${quoted(url)} is not an http(s) URL`)
    return { url }
  }
  if (serviceAccount === undefined)
    throw new CommandLineError('--service-account is missing: name one in the namespace of the operator that may get accounts/usage')
  for (const [option, name] of Object.entries({ namespace, service, 'service-account': serviceAccount })) {
    if (!DNS_NAME.test(name)) throw new CommandLineError(`--${option} ${quoted(name)} is not a name`)
  }
  return { namespace, serviceAccount, service, context }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new CommandLineError(
      `${error instanceof Error ? (error.message.split('. ')[0] ?? '') : ''}; headgate usage --help lists the options`,
    )
  }
}

/** @throws Unusable */
export async function showUsage(command: UsageCommand, around: UsageSurroundings): Promise<void> {
  const { access } = command
  const ask = (url: string, token: string | undefined): Promise<string> => answerOf(command, url, token, around.fetch)
  const text = 'url' in access ? await ask(access.url, around.usageToken()) : await around.reachOperator(access, ask)
  if (command.format !== 'table') return around.print(text)
  const answer = readAnswer(text)
  around.print(tableOf(answer.rows))
  around.report(`${answer.account}, ${answer.from} to ${answer.to}, ${answer.asOf === null ? 'never used' : `as of ${answer.asOf}`}\n`)
  if (answer.incomplete.length > 0) around.report(`incomplete: Redis lost up to 10 s of counts on ${answer.incomplete.join(', ')}\n`)
}

async function answerOf({ account, query }: UsageCommand, base: string, token: string | undefined, get: typeof fetch): Promise<string> {
  const url = new URL(`/usage/v1/accounts/${account}?${query.toString()}`, base)
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await get(url, { headers, redirect: 'error' }).catch((error: unknown) => {
    throw new Unusable(`${url.origin} does not answer (${error instanceof Error ? error.message : String(error)})`)
  })
  const text = await response.text()
  if (response.ok) return text
  throw new Unusable(`the operator answers ${response.status}: ${messageIn(text)}`)
}

const answer = z.object({
  account: z.string(),
  from: z.string(),
  to: z.string(),
  asOf: z.string().nullable(),
  incomplete: z.array(z.string()),
  rows: z.array(z.record(z.string(), z.union([z.string(), z.number()]))),
})

function readAnswer(text: string): z.output<typeof answer> {
  try {
    return answer.parse(JSON.parse(text))
  } catch {
    throw new Unusable('the answer is not one of a Headgate operator of this version; check --url')
  }
}

function messageIn(text: string): string {
  try {
    return z.object({ error: z.object({ message: z.string() }) }).parse(JSON.parse(text)).error.message
  } catch {
    return 'no reason was given; check --url'
  }
}

/** Columns whose values are all 0 are left out, except for requests. */
function tableOf(rows: readonly Readonly<Record<string, string | number>>[]): string {
  const columns = Object.keys(rows[0] ?? {}).filter(
    (column) => column !== 'keyUID' && (column === 'requests' || rows.some((row) => !isZero(row[column]))),
  )
  if (columns.length === 0) return 'no usage\n'
  const cells = [columns.map(heading), ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))]
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]?.length ?? 0)))
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

function isZero(value: string | number | undefined): boolean {
  return value === 0 || value === '0.00'
}

/** `inputTokens` as `INPUT TOKENS`. */
function heading(column: string): string {
  return column.replaceAll(/([A-Z])/g, ' $1').toUpperCase()
}
