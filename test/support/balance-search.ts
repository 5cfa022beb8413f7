/**
 * The promise that nobody but the administrators of accounts can read a balance, checked over a whole test run: tests note the balances that
 * they make, and at the end all output of all parts is searched for them.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { BALANCES_FILE, filesBelow, HASHES_ALLOWED, textOf } from './searched-files.ts'

/** An amount with fewer digits may stand anywhere by chance. */
const MIN_DIGITS = 10
/** A number in any text, with or without separators of thousands, without its exponent. */
const NUMBER = /\d+(?:[,_']\d{3}(?!\d))*(?:\.\d+)?/g

/** The place of a found balance. */
export interface BalanceLeak {
  readonly file: string
  /** The balance as it was noted. */
  readonly balance: string
}

/**
 * Notes a balance, an amount spent or an amount left for the search at the end of the run.
 * @param amount decimal and unusual, such as `7391.482653`
 * @throws RangeError for an amount that is too usual to be searched for
 */
export function noteBalance(folder: string, amount: string): void {
  if (digitsOf(amount).length < MIN_DIGITS)
    throw new RangeError(`${amount} has fewer than ${MIN_DIGITS} digits: any number may look like it`)
  appendFileSync(join(folder, BALANCES_FILE), `${amount}\n`)
}

/** Searches all files except those that hold Secrets and Redis, which administrators alone may read. */
export function searchForBalances(folder: string): {
  readonly balances: number
  readonly files: number
  readonly leaks: readonly BalanceLeak[]
} {
  const path = join(folder, BALANCES_FILE)
  const noted = existsSync(path) ? [...new Set(readFileSync(path, 'utf8').split('\n').filter(Boolean))] : []
  const files = noted.length === 0 ? [] : filesBelow(folder).filter((file) => !relative(folder, file).includes(HASHES_ALLOWED))
  const leaks = files.flatMap((file) =>
    balancesIn(textOf(readFileSync(file)), noted).map((balance) => ({ file: relative(folder, file), balance })),
  )
  return { balances: noted.length, files: files.length, leaks }
}

/** The amounts that a text has: as they are, in micro-units, with an exponent, or as a float, whose last digit may differ. */
export function balancesIn(text: string, amounts: readonly string[]): string[] {
  const starts = amounts.map((amount) => ({ amount, start: digitsOf(amount).slice(0, -1) }))
  const found = new Set<string>()
  for (const [number] of text.matchAll(NUMBER)) {
    const digits = digitsOf(number)
    for (const { amount, start } of starts) if (digits.startsWith(start)) found.add(amount)
  }
  return [...found]
}

/** The significant digits. */
function digitsOf(number: string): string {
  return number.replaceAll(/\D/g, '').replace(/^0+/, '').replace(/0+$/, '')
}
