/** The command line, parsed once into a typed command. Pure. */
import { parseArgs } from 'node:util'
import type { ConvertOptions, TeamModels } from './litellm/convert.ts'

/** A parsed command. */
export type Command =
  | { readonly do: 'help'; readonly text: string }
  | ({
      readonly do: 'import-litellm'
      /** `-`: standard input. */
      readonly file: string
      /** `-`: standard output. */
      readonly output: string
    } & Omit<ConvertOptions, 'nowMs'>)

/** The command line is wrong. The message names the argument and the remedy. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

const HELP = `Usage: headgate COMMAND

Commands:
  import litellm FILE   make ApiKey manifests from the virtual keys of LiteLLM

headgate COMMAND --help says more about a command.
`

const IMPORT_HELP = `Usage: headgate import litellm FILE [--namespace NAME] [--output FILE] [--team-models TEAM=MODELS] [--subtract-spend]

Makes one ApiKey manifest per virtual key of LiteLLM. Clients keep their keys: a manifest holds the SHA-256 that LiteLLM stores.
It calls nothing and changes nothing; a report on standard error says what was taken over, what was not, and what to do.

FILE is one of these, or - for standard input:
  the answer of GET /key/list?return_full_object=true&size=100 (each page is a file of its own, or jq -s of all pages)
  the answer of GET /key/info?key=HASH
  rows of the table LiteLLM_VerificationToken, as a JSON list or as CSV with a header

Options:
  -n, --namespace NAME       namespace of the ApiKeys (default: default)
  -o, --output FILE          where to write the manifests (default: -, standard output)
      --team-models TEAM=A,B models of a team, for its keys without a list of their own; once per team id
      --subtract-spend       write the rest of budgets that never reset, instead of the whole amount
  -h, --help                 print this text

Exit codes: 0 every key was written; 1 the file cannot be used, nothing was written; 2 the command line is wrong;
3 some keys were not written, the report names them.

Example:
  curl -s -H "Authorization: Bearer $LITELLM_MASTER_KEY" "$LITELLM_URL/key/list?return_full_object=true&size=100" > keys.json
  headgate import litellm keys.json --namespace apps --output apikeys.yaml
`

const OPTIONS = {
  namespace: { type: 'string', short: 'n', default: 'default' },
  output: { type: 'string', short: 'o', default: '-' },
  'team-models': { type: 'string', multiple: true, default: [] as string[] },
  'subtract-spend': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

/** @param args without the program @throws UsageError */
export function parseCommand(args: readonly string[]): Command {
  const { values, positionals } = parsed(args)
  const [command] = positionals
  if (command === 'import') return values.help ? { do: 'help', text: IMPORT_HELP } : importCommand(positionals, values)
  const isHelp = command === 'help' || (command === undefined && (values.help || args.length === 0))
  if (isHelp) return { do: 'help', text: HELP }
  throw new UsageError(
    command === undefined
      ? 'COMMAND is missing; headgate --help lists them'
      : `${quoted(command)} is not a command; headgate --help lists them`,
  )
}

type Values = ReturnType<typeof parsed>['values']

function importCommand([, source, file, ...rest]: readonly string[], values: Values): Command {
  if (source !== 'litellm')
    throw new UsageError(`import ${quoted(source)}: only litellm can be imported; write headgate import litellm FILE`)
  if (file === undefined) throw new UsageError('FILE is missing; headgate import --help lists the readable files')
  if (rest.length > 0) throw new UsageError(`one FILE at a time; ${rest.length} more were given`)
  const { namespace, output } = values
  if (!NAMESPACE.test(namespace))
    throw new UsageError(`--namespace ${quoted(namespace)} is not the name of a namespace; use lower-case letters, digits and -`)
  return {
    do: 'import-litellm',
    file,
    namespace,
    output,
    subtractSpend: values['subtract-spend'],
    teamModels: teams(values['team-models']),
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? (error.message.split('. ')[0] ?? '') : ''}; headgate --help lists the options`)
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
      if (at < 1 || models.length === 0) throw new UsageError(`--team-models ${quoted(entry)} is not of the form TEAM=model-a,model-b`)
      return [entry.slice(0, at), models] as const
    }),
  )
}

/** Quotes a word for a message, without a key that was pasted in its place. */
function quoted(text = ''): string {
  return text.startsWith('sk-') ? 'sk-…' : JSON.stringify(text.slice(0, 80))
}
