/** Errors of a command as a person reads them, and the parts of command lines that several commands have. */
import { parseArgs, type ParseArgsConfig } from 'node:util'

/** The command line is wrong. The message names the argument and the remedy. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError'
}

/** The command cannot do its work. The message names the reason and the remedy. */
export class Unusable extends Error {
  override readonly name = 'Unusable'
}

/** Names of objects: letters in lower case, digits, `-` and `.`, at most 253. */
export const DNS_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** Option of every command. */
export const HELP_OPTION = { help: { type: 'boolean', short: 'h', default: false } } as const

/** Quotes a word for a message, without a key that was pasted in its place. */
export function quoted(text = ''): string {
  return text.startsWith('sk-') ? 'sk-…' : JSON.stringify(text.slice(0, 80))
}

/**
 * Parses the options of a command.
 * @param command for the message, for example `headgate usage`
 * @throws CommandLineError
 */
export function parsedArgs<const Options extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: Options,
  command: string,
): ReturnType<typeof parseArgs<{ args: string[]; options: Options; allowPositionals: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new CommandLineError(`${error instanceof Error ? (error.message.split('. ')[0] ?? '') : ''}; ${command} --help lists the options`)
  }
}

/** The one ACCOUNT of a command. @throws CommandLineError */
export function oneAccount([account, ...rest]: readonly string[], command: string): string {
  const name = accountName(account, command)
  if (rest.length > 0) throw new CommandLineError(`one ACCOUNT at a time; ${rest.length} more were given`)
  return name
}

/** @throws CommandLineError */
export function accountName(account: string | undefined, command: string): string {
  if (account === undefined) throw new CommandLineError(`ACCOUNT is missing; ${command} --help says more`)
  if (!DNS_NAME.test(account)) throw new CommandLineError(`${quoted(account)} is not the name of an Account`)
  return account
}
