/** Runs one command: its command line, files, streams and exit code. */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { text } from 'node:stream/consumers'
import { convert, type ConvertOptions, NO_KEYS, type TeamModels } from './litellm/convert.ts'
import { readConfig } from './litellm/read-config.ts'
import { readKeys, UnreadableFile } from './litellm/read-keys.ts'
import { reportOf } from './litellm/report.ts'
import { convertModels, type ModelConversion, NO_MODELS } from './litellm/served-models.ts'
import { runKubectl } from './access/kubectl.ts'
import { type LocalState, StateFile } from './access/local-state.ts'
import { reachOperator } from './access/reach-operator.ts'
import { addCredit, type CreditSurroundings } from './billing/add-credit.ts'
import { balanceCommand, type BalanceSurroundings, showBalance } from './billing/balance.ts'
import { creditCommand } from './billing/credit.ts'
import { ledgerCommand, showLedger } from './billing/ledger.ts'
import { plainLines } from '#contract/values/plain-text.ts'
import { CommandLineError, HELP_OPTION, parsedArgs, quoted, Unusable } from './command-line.ts'
import { manifestText } from './manifest-text.ts'
import type { AccessSurroundings } from './access/operator-answer.ts'
import { showUsage, usageCommand } from './usage/usage.ts'
import { convertTeams, NO_TEAMS, readTeams, type TeamConversion } from './litellm/teams.ts'

/** The environment of the command. */
const PROCESS = {
  /** @throws Error if there is no such file */
  readFile: (path: string) => readFile(path, 'utf8'),
  readInput: () => text(process.stdin),
  /** Writes a whole file, or none. */
  async writeFile(path: string, content: string) {
    await writeFile(`${path}.new`, content)
    await rename(`${path}.new`, path)
  },
  print: (content: string) => void process.stdout.write(content),
  report: (content: string) => void process.stderr.write(content),
  /** ms since 1970 */
  now: () => Date.now(),
  usageToken: () => process.env['HEADGATE_USAGE_TOKEN'],
  reachOperator,
  fetch: globalThis.fetch,
  kubectl: runKubectl,
  local: new StateFile() as LocalState,
  sleep: (ms: number): Promise<unknown> => sleep(ms),
  /** @returns false if the file exists */
  async createFile(path: string, content: string): Promise<boolean> {
    try {
      await writeFile(path, content, { flag: 'wx' })
      return true
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
      throw error
    }
  },
}
type Billing = BalanceSurroundings & CreditSurroundings & AccessSurroundings
type Surroundings = Omit<typeof PROCESS, keyof Billing> & Billing

/** `import litellm FILE`, parsed. */
interface ImportCommand extends Omit<ConvertOptions, 'nowMs' | 'teams'> {
  /** File with the teams; undefined: none. */
  readonly teamFile: string | undefined
  /** File with the models; undefined: none. */
  readonly configFile: string | undefined
  /** `-`: standard input. Undefined: no keys, models alone. */
  readonly file: string | undefined
  /** `-`: standard output. */
  readonly output: string
}

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

const HELP = `Usage: headgate COMMAND

Commands:
  import litellm FILE   make manifests from the virtual keys, teams and models of LiteLLM
  usage ACCOUNT         show what the keys of an account have used
  balance ACCOUNT       print what is left of the Credits of an account
  credit add ACCOUNT    add a Credit to an account
  ledger ACCOUNT        list every movement of the balance of an account

headgate COMMAND --help says more about a command.
`

const IMPORT_HELP = `Usage: headgate import litellm [FILE] [--config FILE] [--teams FILE] [--namespace NAME] [--output FILE]
                               [--team-models TEAM=MODELS] [--subtract-spend]

Makes one ApiKey manifest per virtual key of LiteLLM. Clients keep their keys: a manifest holds the SHA-256 that LiteLLM stores.
It calls nothing and changes nothing; a report on standard error says what was imported, what was not, and what to do.

FILE is one of these, or - for standard input:
  the answer of GET /key/list?return_full_object=true&size=100 (each page is a file of its own, or jq -s of all pages)
  the answer of GET /key/info?key=HASH
  rows of the table LiteLLM_VerificationToken, as a JSON list or as CSV with a header
Without FILE, --config makes ServedModels alone.

Options:
  -c, --config FILE          LiteLLM's config.yaml, or the answer of GET /model/info: makes a ServedModel of each model_name
      --teams FILE           the answer of GET /team/list: makes an Account of each team, and a Plan of each list of models
  -n, --namespace NAME       namespace of the ApiKeys and ServedModels (default: default)
  -o, --output FILE          where to write the manifests (default: -, standard output)
      --team-models TEAM=A,B models of a team, for its keys without a list of their own; once per team id
      --subtract-spend       write the rest of budgets that never reset, instead of the whole amount
  -h, --help                 print this text

Exit codes: 0 every key was written; 1 the file cannot be used, nothing was written; 2 the command line is wrong;
3 some keys, teams or models were not written, or pages of keys are missing;
the report names them.

Example:
  curl -s -H "Authorization: Bearer $LITELLM_MASTER_KEY" "$LITELLM_URL/key/list?return_full_object=true&size=100" > keys.json
  headgate import litellm keys.json --config config.yaml --namespace apps --output manifests.yaml
`

const OPTIONS = {
  namespace: { type: 'string', short: 'n', default: 'default' },
  output: { type: 'string', short: 'o', default: '-' },
  teams: { type: 'string' },
  config: { type: 'string', short: 'c' },
  'team-models': { type: 'string', multiple: true, default: [] as string[] },
  'subtract-spend': { type: 'boolean', default: false },
  ...HELP_OPTION,
} as const

/** Exit codes; the help texts explain them. */
const [OK, UNUSABLE, USAGE, SOME_REFUSED] = [0, 1, 2, 3] as const

/** @param args without the program @returns the exit code */
export async function run(args: readonly string[], around: Surroundings = PROCESS): Promise<number> {
  try {
    const command = OTHERS.get(args[0] ?? '')
    if (command !== undefined) return await command(args.slice(1), around)
    const parsed = parseCommand(args)
    if (typeof parsed !== 'string') return await importLiteLLM(parsed, around)
    around.print(parsed)
    return OK
  } catch (error) {
    if (![CommandLineError, UnreadableFile, Unusable].some((known) => error instanceof known)) throw error
    if (!(error instanceof Error)) throw error
    around.report(`headgate: ${plainLines(error.message)}\n`)
    return error instanceof CommandLineError ? USAGE : UNUSABLE
  }
}

type Command = (args: readonly string[], around: Surroundings) => Promise<number>

/** The commands beside `import`, by their first word. They get the words behind it. */
const OTHERS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['usage', (args, around) => ran(usageCommand(args), around, showUsage)],
  ['balance', (args, around) => ran(balanceCommand(args), around, showBalance)],
  ['ledger', (args, around) => ran(ledgerCommand(args), around, showLedger)],
  ['credit', (args, around) => ran(creditCommand(args), around, addCredit)],
])

/** Prints a text of help, or does the work of a command. @returns the exit code; work that resolves with false is not complete */
async function ran<Parsed extends object>(
  command: Parsed | string,
  around: Surroundings,
  work: (command: Parsed, around: Surroundings) => Promise<boolean | void>,
): Promise<number> {
  if (typeof command !== 'string') return (await work(command, around)) === false ? SOME_REFUSED : OK
  around.print(command)
  return OK
}

async function importLiteLLM(command: ImportCommand, around: Surroundings): Promise<number> {
  const { output } = command
  const teams = await teamsOf(command, around)
  const models = await modelsOf(command, around)
  const content = await keysIn(command, around)
  const keys = content === undefined ? NO_KEYS : convert(readKeys(content), { ...command, teams, nowMs: around.now() })
  const accounts = teams.accounts.map(({ account }) => account)
  const manifests = [...teams.plans, ...accounts, ...[...models.written, ...keys.written].map(({ manifest }) => manifest)]
  const yaml = manifests.map(manifestText).join('---\n')
  if (output === '-') around.print(yaml)
  else await done(() => around.writeFile(output, yaml), `--output ${output} cannot be written`, 'name a file in a folder that exists')
  around.report(reportOf(keys, output === '-' ? 'standard output' : output, teams, models))
  const isWhole = keys.notes.length === 0 && [keys, teams, models].every(({ refused }) => refused.length === 0)
  return isWhole ? OK : SOME_REFUSED
}

/** @returns undefined if the command names no file with keys */
async function keysIn({ file }: ImportCommand, around: Surroundings): Promise<string | undefined> {
  if (file === undefined) return undefined
  const read = (): Promise<string> => (file === '-' ? around.readInput() : around.readFile(file))
  const input = file === '-' ? 'standard input' : file
  return await done(read, `${input} cannot be read`, 'name a file that exists, or - for standard input')
}

async function modelsOf({ configFile: file, namespace }: ImportCommand, around: Surroundings): Promise<ModelConversion> {
  if (file === undefined) return NO_MODELS
  const content = await done(() => around.readFile(file), `--config ${file} cannot be read`, 'name a file that exists')
  return convertModels(readConfig(content), namespace)
}

async function teamsOf(command: ImportCommand, around: Surroundings): Promise<TeamConversion> {
  const { teamFile: file } = command
  if (file === undefined) return NO_TEAMS
  const content = await done(() => around.readFile(file), `--teams ${file} cannot be read`, 'name a file that exists')
  return convertTeams(readTeams(content), command)
}

/** @throws UnreadableFile if the work fails */
async function done<T>(work: () => Promise<T>, problem: string, remedy: string): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
    throw new UnreadableFile(`${problem} (${code}); ${remedy}`)
  }
}

/** @param args without the program @returns the command, or a text of help @throws CommandLineError */
function parseCommand(args: readonly string[]): ImportCommand | string {
  const { values, positionals } = parsedArgs(args, OPTIONS, 'headgate')
  const [command] = positionals
  if (command === 'import') return values.help ? IMPORT_HELP : importCommand(positionals, values)
  const isHelp = command === 'help' || (command === undefined && (values.help || args.length === 0))
  if (isHelp) return HELP
  throw new CommandLineError(
    command === undefined
      ? 'COMMAND is missing; headgate --help lists them'
      : `${quoted(command)} is not a command; headgate --help lists them`,
  )
}

type Values = ReturnType<typeof parsedArgs<typeof OPTIONS>>['values']

function importCommand([, source, file, ...rest]: readonly string[], values: Values): ImportCommand {
  if (source !== 'litellm')
    throw new CommandLineError(`import ${quoted(source)}: only litellm can be imported; write headgate import litellm FILE`)
  if (file === undefined && values.config === undefined)
    throw new CommandLineError('FILE is missing; headgate import --help lists the readable files')
  if (rest.length > 0) throw new CommandLineError(`one FILE at a time; ${rest.length} more were given`)
  const { namespace, output } = values
  if (!NAMESPACE.test(namespace))
    throw new CommandLineError(`--namespace ${quoted(namespace)} is not the name of a namespace; use lower-case letters, digits and -`)
  return {
    file,
    teamFile: values.teams,
    configFile: values.config,
    namespace,
    output,
    subtractSpend: values['subtract-spend'],
    teamModels: teams(values['team-models']),
  }
}

function teams(entries: readonly string[]): TeamModels {
  return new Map(
    entries.map((entry) => {
      const at = entry.lastIndexOf('=')
      const models = entry
        .slice(at + 1)
        .split(',')
        .map((name) => name.trim())
        .filter(Boolean)
      if (at < 1 || models.length === 0)
        throw new CommandLineError(`--team-models ${quoted(entry)} is not of the form TEAM=model-a,model-b`)
      return [entry.slice(0, at), models] as const
    }),
  )
}
