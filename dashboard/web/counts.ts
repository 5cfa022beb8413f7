/** Counts as people read them in figures. Pure. */
import { whole } from './money.ts'

const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 })
/** Below this, a short count is the exact one. */
const SHORT_FROM = 10_000n

/** `344 M`; exact where that is as short. */
export function shortCount(count: bigint): string {
  if (count < SHORT_FROM) return whole(String(count))
  return SHORT.format(count).replace(/[A-Z]$/, (letter) => `\u00a0${letter === 'K' ? 'k' : letter}`)
}

/** A part of a whole, rounded down and never 100 % before all of it: `97.9 %`. @param whole 0: `–` */
export function share(part: bigint, whole: bigint, decimals: 0 | 1 | 2): string {
  if (whole === 0n) return '–'
  const scale = 10n ** BigInt(decimals)
  const scaled = (part * 100n * scale) / whole
  if (scaled === 0n && part > 0n) return `< ${fixed(1n, decimals)}\u00a0%`
  return `${fixed(scaled, decimals)}\u00a0%`
}

function fixed(scaled: bigint, decimals: number): string {
  const digits = String(scaled).padStart(decimals + 1, '0')
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}
