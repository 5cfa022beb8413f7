/** Amounts as the pages write them. Amounts are decimal text: no float ever holds money. Pure. */

const AMOUNT = /^-?\d+(\.\d+)?$/

/** `€18.40`, `−€5.00`; `< €0.01` for less than a cent. @param currency undefined while it is not known: `18.40` */
export function money(amount: string, currency: string | undefined): string {
  return written(amount, formatOf(currency, 'auto'))
}

/** As `money`, without the cents of a round amount: `€25`. */
export function shortMoney(amount: string, currency: string | undefined): string {
  return written(amount, formatOf(currency, 'stripIfInteger'))
}

/** `40,000` */
export function whole(number: number | string): string {
  const text = String(number)
  return /^-?\d+$/.test(text) ? WHOLE.format(BigInt(text)).replace('-', '−') : text
}

const WHOLE = new Intl.NumberFormat('en-US')

interface Format {
  readonly intl: Intl.NumberFormat
  readonly decimals: number
}

/** By currency and zeros: to make a format takes a browser longer than to use it a hundred times, and a list of keys has hundreds of amounts. */
const formats = new Map<string, Format>()

function formatOf(currency: string | undefined, trailingZeroDisplay: 'auto' | 'stripIfInteger'): Format {
  const name = `${currency ?? ''} ${trailingZeroDisplay}`
  const known = formats.get(name)
  if (known !== undefined) return known
  const unit: Intl.NumberFormatOptions =
    currency === undefined ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { style: 'currency', currency }
  const intl = new Intl.NumberFormat('en-US', { ...unit, trailingZeroDisplay })
  const format = { intl, decimals: intl.resolvedOptions().maximumFractionDigits ?? 2 }
  formats.set(name, format)
  return format
}

function written(amount: string, { intl, decimals }: Format): string {
  if (!AMOUNT.test(amount)) return amount
  if (!isTiny(amount, decimals)) return formatted(amount, intl)
  const least = decimals === 0 ? '1' : `0.${'1'.padStart(decimals, '0')}`
  return amount.startsWith('-') ? `> ${formatted(`-${least}`, intl)}` : `< ${formatted(least, intl)}`
}

/** Whether the amount is not zero, but smaller than the least amount that the format can write. */
function isTiny(amount: string, decimals: number): boolean {
  const [before = '', after = ''] = amount.replace('-', '').split('.')
  return /[1-9]/.test(after) && !/[1-9]/.test(before + after.slice(0, decimals))
}

/** Intl reads decimal text without a float in between. */
function formatted(amount: string, format: Intl.NumberFormat): string {
  return format.format(amount as Intl.StringNumericLiteral).replace('-', '−')
}
