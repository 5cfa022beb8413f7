/** Sums of money: the decimal text of the server as whole micro-units, and back. Pure. A float is never an amount. */
import { money } from './money.ts'

const DECIMALS = 6
const AMOUNT = /^(-?)(\d+)(?:\.(\d{1,6}))?$/

/** Micro-units of the currency. @throws RangeError for text that is not an amount: a sum without it would be wrong */
export function microsOf(text: string): bigint {
  const [, sign = '', units, decimals = ''] = AMOUNT.exec(text) ?? []
  if (units === undefined) throw new RangeError(`not an amount of money: ${text.slice(0, 40)}`)
  return BigInt(`${sign}${units}${decimals.padEnd(DECIMALS, '0')}`)
}

/** Decimal text with all six decimals. */
export function decimalOf(micros: bigint): string {
  const digits = String(micros < 0n ? -micros : micros).padStart(DECIMALS + 1, '0')
  return `${micros < 0n ? '-' : ''}${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`
}

export function sumOf(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => sum + amount, 0n)
}

/** How amounts of one currency are written. Amounts are micro-units. */
export interface Money {
  /** Code of the currency, for the head of a column. */
  readonly currency: string
  /** The smallest amount that is written with its figures: a cent. */
  readonly cent: bigint
  /** `€61.61`, `−€63.39`, `< €0.01` */
  readonly text: (micros: bigint) => string
  /** Without the currency, for a column whose head names it: `61.61`. */
  readonly cell: (micros: bigint) => string
  /** A change, in such a column: `+150.00`, `−1.86`. */
  readonly change: (micros: bigint) => string
  /** With all decimals that the amount has, for the scale of a chart: `€10`, `€2.50`, `€0.0004`. */
  readonly exact: (micros: bigint) => string
}

export function moneyIn(currency: string): Money {
  const usual = new Intl.NumberFormat('en-US', { style: 'currency', currency })
  const digits = usual.resolvedOptions().maximumFractionDigits ?? 2
  const long = { style: 'currency', currency, maximumFractionDigits: DECIMALS, trailingZeroDisplay: 'stripIfInteger' } as const
  const exact = new Intl.NumberFormat('en-US', long)
  const cent = 10n ** BigInt(DECIMALS - digits)
  const symbol = usual.formatToParts(0).find(({ type }) => type === 'currency')?.value ?? ''
  const text = (micros: bigint): string => money(decimalOf(micros), currency)
  const cell = (micros: bigint): string => text(micros).replace(symbol, '').replace('\u00a0', '')
  return {
    ...{ currency, cent, text, cell },
    change: (micros) => (micros >= cent ? `+${cell(micros)}` : cell(micros)),
    exact: (micros) => exact.format(decimalOf(micros) as Intl.StringNumericLiteral).replace('-', '−'),
  }
}
