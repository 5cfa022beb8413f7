/** A Credit as the command line gives it, and as a manifest. Amounts are integers of micro-units from the first parse on. */
import { z } from 'zod'
import { CREDIT_TYPES, MAX_REFERENCE } from '#api/credit.ts'
import { DNS_SUBDOMAIN } from '#api/metadata.ts'
import { validateManifest } from '#api/validate.ts'
import { formatSignedAmount, parseSignedAmount, type SignedMicros } from '#contract/values/signed-micros.ts'
import { accountName, CommandLineError, HELP_OPTION, parsedArgs, quoted } from '../command-line.ts'
import { conditionIn, shownConditions, type ShownCondition } from './condition.ts'

export const CREDIT_HELP = `Usage: headgate credit add ACCOUNT AMOUNT --id ID [--type TYPE] [--reference TEXT] [--context NAME | --local]

Adds a Credit to an account: a payment, a gift, or, with a negative AMOUNT, money that goes back. A Credit cannot be changed or taken back; another
one with a negative amount corrects it.

ID is the name of the Credit and makes it count once: run the command again after any failure. If a Credit of this ID exists, the command compares
account, amount and reference, and says whether it is the same payment. The operator keeps each ID for ever, also after the Credit was deleted.
For a payment, ID is best made of the provider and the first 40 hexadecimal digits of the SHA-256 of the provider's own id, which goes into TEXT.

In a cluster it runs kubectl create and kubectl get, so its user needs these verbs on credits of headgate.dev, as in the role headgate-billing. It
waits up to 10 s until the Credit counts.

Options:
      --id ID            DNS name: letters in lower case, digits, "-" and "."
      --type TYPE        TopUp, Grant, Refund, Dispute or Adjustment (default: TopUp; a negative AMOUNT has no default)
      --reference TEXT   for people and programs, at most 128 characters: for example the provider's id of the payment
      --context NAME     context of kubectl
      --local            write a manifest for the \`make run\` that was started in this folder, instead of using a cluster
  -h, --help             print this text

Exit codes: 0 the Credit counts (with --local: is written); 1 it was not added, cannot be read, or ID is another payment; 2 the command line is
wrong; 3 the Credit exists and does not count, and the report says why.

Examples:
  headgate credit add acme 25.00 --id stripe-3c1f9b --reference pi_3QxYz
  headgate credit add acme -25.00 --id stripe-dispute-77a0e2 --type Dispute --reference du_1QxYz
  headgate credit add acme 10 --id welcome --type Grant --local
`

const COMMAND = 'headgate credit add'

const OPTIONS = {
  id: { type: 'string' },
  type: { type: 'string' },
  reference: { type: 'string', default: '' },
  context: { type: 'string' },
  local: { type: 'boolean', default: false },
  ...HELP_OPTION,
} as const

/** The fields of a Credit by which two payments are told apart, and its type. */
export interface Credit {
  readonly id: string
  readonly account: string
  readonly micros: SignedMicros
  readonly type: string
  /** '' for none. */
  readonly reference: string
}

export interface CreditCommand {
  readonly credit: Credit
  /** `local`: the `make run` of this folder. */
  readonly place: { readonly context: string | undefined } | 'local'
}

/** @param args behind `credit` @returns the command, or the text of help @throws CommandLineError */
export function creditCommand(args: readonly string[]): CreditCommand | string {
  const { values, positionals } = parsedArgs(args.map(asOperand), OPTIONS, 'headgate credit')
  const [verb, account, amount, ...rest] = positionals.map((text) => text.trim())
  if (values.help || verb === 'help') return CREDIT_HELP
  if (verb !== 'add') throw new CommandLineError(`credit ${quoted(verb)}: only add is known; write ${COMMAND} ACCOUNT AMOUNT --id ID`)
  const name = accountName(account, COMMAND)
  const micros = amountIn(name, amount)
  if (rest.length > 0) throw new CommandLineError(`one AMOUNT at a time; ${rest.length} more words were given`)
  const place = placeOf(values)
  const credit = checked({
    id: idIn(values.id?.trim()),
    account: name,
    micros,
    type: typeIn(values.type?.trim(), micros),
    reference: referenceIn(values.reference.trim()),
  })
  return { credit, place }
}

function placeOf({ local: isLocal, context }: { readonly local: boolean; readonly context?: string | undefined }): CreditCommand['place'] {
  if (!isLocal) return { context }
  if (context !== undefined) throw new CommandLineError('--local and --context are both given; leave one out')
  return 'local'
}

/** A negative amount looks like an option; a space in front makes it an operand. */
function asOperand(arg: string): string {
  return /^-[\d.]/.test(arg) ? ` ${arg}` : arg
}

function amountIn(account: string, text: string | undefined): SignedMicros {
  if (text === undefined)
    throw new CommandLineError(`AMOUNT is missing: write ${COMMAND} ${account} AMOUNT --id ID, for example with 25.00`)
  const micros = parseSignedAmount(text)
  if (micros === undefined)
    throw new CommandLineError(
      `AMOUNT ${quoted(text)} is not an amount: write at most 9 digits before the point and 6 after it, as in 25 or -3.50`,
    )
  if (micros === 0) throw new CommandLineError('AMOUNT is 0: a Credit adds or takes money; write another amount')
  return micros
}

function idIn(id: string | undefined): string {
  if (id === undefined)
    throw new CommandLineError(
      '--id is missing: the id makes the payment count once; use one that is made from the payment and no random one',
    )
  if (id.length > 253 || !new RegExp(DNS_SUBDOMAIN).test(id))
    throw new CommandLineError(
      `--id ${quoted(id)} is not a DNS name: use letters in lower case, digits, "-" and "."; the provider's own id goes into --reference`,
    )
  return id
}

function typeIn(type: string | undefined, micros: SignedMicros): string {
  if (type === undefined && micros > 0) return 'TopUp'
  if (type === undefined) throw new CommandLineError('--type is missing: a negative AMOUNT is a Refund, a Dispute or an Adjustment')
  const known = CREDIT_TYPES.find((one) => one === type)
  if (known === undefined)
    throw new CommandLineError(`--type ${quoted(type)}: use ${CREDIT_TYPES.slice(0, -1).join(', ')} or ${CREDIT_TYPES.at(-1) ?? ''}`)
  return known
}

function referenceIn(reference: string): string {
  const { length } = Array.from(reference)
  if (length > MAX_REFERENCE) throw new CommandLineError(`--reference has ${length} characters: use at most ${MAX_REFERENCE}`)
  return reference
}

/** Nothing is created that the API server would refuse. @throws CommandLineError */
function checked(credit: Credit): Credit {
  const validated = validateManifest(manifestOf(credit))
  if (validated.ok) return credit
  throw new CommandLineError(validated.errors.map(({ field, reason, remedy }) => `${field} ${reason}; ${remedy}`).join('\n'))
}

export function manifestOf({ id, account, micros, type, reference }: Credit): unknown {
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Credit',
    metadata: { name: id },
    spec: {
      accountRef: { name: account },
      amount: formatSignedAmount(micros),
      type,
      ...(reference !== '' && { reference }),
    },
  }
}

/** A Credit as a cluster or a file has it. */
const storedCredit = z.object({
  kind: z.literal('Credit'),
  spec: z.object({ accountRef: z.object({ name: z.string() }), amount: z.string(), reference: z.string().default('') }),
  status: z.object({ conditions: shownConditions }).optional(),
})
export type StoredCredit = z.output<typeof storedCredit>

/** @returns undefined for an object of another form */
export function readStored(object: unknown): StoredCredit | undefined {
  return storedCredit.safeParse(object).data
}

/** In what a stored Credit differs as a payment; [] for the same one. */
export function differences({ account, micros, reference }: Credit, { spec }: StoredCredit): readonly string[] {
  return [
    ...(spec.accountRef.name === account ? [] : [`account ${spec.accountRef.name} instead of ${account}`]),
    ...(parseSignedAmount(spec.amount) === micros ? [] : [`amount ${spec.amount} instead of ${formatSignedAmount(micros)}`]),
    ...(spec.reference === reference ? [] : [`reference ${quoted(spec.reference)} instead of ${quoted(reference)}`]),
  ]
}

/** The condition that says whether a Credit counts; undefined before the operator has seen it. */
export function bookedIn({ status }: StoredCredit): ShownCondition | undefined {
  return conditionIn(status, 'Booked')
}
