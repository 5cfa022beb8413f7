/** Errors of a command as a person reads them. */

/** The command line is wrong. The message names the argument and the remedy. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError'
}

/** The command cannot do its work. The message names the reason and the remedy. */
export class Unusable extends Error {
  override readonly name = 'Unusable'
}

/** Quotes a word for a message, without a key that was pasted in its place. */
export function quoted(text = ''): string {
  return text.startsWith('sk-') ? 'sk-…' : JSON.stringify(text.slice(0, 80))
}
