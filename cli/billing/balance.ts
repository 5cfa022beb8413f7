/** `headgate balance ACCOUNT`: what is left of the Credits of an account, as the operator wrote it into the status. */
import { z } from 'zod'
import { contextArgs, type Kubectl } from '../access/kubectl.ts'
import type { LocalState } from '../access/local-state.ts'
import { CommandLineError, HELP_OPTION, oneAccount, parsedArgs, Unusable } from '../command-line.ts'
import { conditionIn, shownConditions } from './condition.ts'

export const BALANCE_HELP = `Usage: headgate balance ACCOUNT [--context NAME | --local]

Prints the balance of an account: its Credits without what its keys have spent. Standard error says how old the balance is: the operator writes it
at once after a Credit, and when it is used up, else at most once a minute.

In a cluster it runs kubectl get, so its user needs the verb get on accounts of headgate.dev.

Options:
      --context NAME   context of kubectl
      --local          read the state of the \`make run\` that was started in this folder
  -h, --help           print this text

Exit codes: 0 shown; 1 it cannot be read; 2 the command line is wrong.

Example:
  headgate balance acme
`

const OPTIONS = { context: { type: 'string' }, local: { type: 'boolean', default: false }, ...HELP_OPTION } as const

export interface BalanceCommand {
  readonly account: string
  readonly context: string | undefined
  readonly isLocal: boolean
}

/** What the command needs from outside. */
export interface BalanceSurroundings {
  readonly print: (text: string) => void
  readonly report: (text: string) => void
  readonly kubectl: Kubectl
  readonly local: Pick<LocalState, 'object'>
}

/** @param args behind `balance` @returns the command, or the text of help @throws CommandLineError */
export function balanceCommand(args: readonly string[]): BalanceCommand | string {
  const { values, positionals } = parsedArgs(args, OPTIONS, 'headgate balance')
  if (values.help) return BALANCE_HELP
  const { context, local: isLocal } = values
  if (isLocal && context !== undefined) throw new CommandLineError('--local and --context are both given; leave one out')
  return { account: oneAccount(positionals, 'headgate balance'), context, isLocal }
}

const shownAccount = z.object({
  spec: z.object({ billing: z.string().default('Unmetered') }),
  status: z
    .object({
      balance: z.object({ amount: z.string(), currency: z.string(), asOf: z.string() }).optional(),
      spent: z.string().optional(),
      conditions: shownConditions,
    })
    .optional(),
})
type ShownAccount = z.output<typeof shownAccount>

/** @throws Unusable */
export async function showBalance({ account: name, context, isLocal }: BalanceCommand, around: BalanceSurroundings): Promise<void> {
  const account = readAccount(
    name,
    isLocal ? await around.local.object('accounts', name) : await fromCluster(name, context, around.kubectl),
  )
  const balance = account.status?.balance
  if (balance === undefined) throw new Unusable(`Account ${name} has no balance: ${whyNot(account)}`)
  around.print(`${balance.amount} ${balance.currency}\n`)
  const spent = account.status?.spent === undefined ? '' : `, ${account.status.spent} spent`
  around.report(`${name}, ${account.spec.billing}${spent}, as of ${balance.asOf}\n`)
  const remedy = `headgate credit add ${name} AMOUNT --id ID adds a Credit`
  if (conditionIn(account.status, 'BalanceExhausted')?.status === 'True')
    around.report(`the balance is used up, and keys answer 402; ${remedy}\n`)
}

async function fromCluster(name: string, context: string | undefined, kubectl: Kubectl): Promise<unknown> {
  const answer = await kubectl([...contextArgs(context), 'get', 'accounts.headgate.dev', name, '-o', 'json'])
  if (answer.isDone) return JSON.parse(answer.output)
  throw new Unusable(`kubectl get: ${answer.why}`)
}

function readAccount(name: string, object: unknown): ShownAccount {
  if (object === undefined) throw new Unusable(`\`make run\` has no Account ${name}; make status lists its Accounts`)
  const { success, data } = shownAccount.safeParse(object)
  if (success) return data
  throw new Unusable(`Account ${name} has another form than this version knows; use the version of the operator`)
}

function whyNot({ spec, status }: ShownAccount): string {
  const accepted = conditionIn(status, 'Accepted')
  if (accepted?.status === 'False') return `it is not accepted (${accepted.reason}). ${accepted.message}`
  if (spec.billing !== 'Prepaid' && status?.spent !== undefined)
    return `it is ${spec.billing} and never had a Credit; its keys have spent ${status.spent}`
  return 'the operator writes it when it has opened the books of the account; try again'
}
