/** Amounts of the provider: integers of minor units, such as cents. Pure. */
import { parseMicros } from '#contract/values/micros.ts'

interface Units {
  /** Decimals of the currency at the provider. */
  readonly decimals: number
  /** An amount must be a multiple of this number of minor units. */
  readonly step: number
}

const NO_DECIMALS = 'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' ')
const THREE_DECIMALS = 'bhd jod kwd omr tnd'.split(' ')
/** Currencies whose amounts have two decimals at the provider, and both must be zero. */
const WHOLE = 'isk ugx'.split(' ')
const MICRO_DECIMALS = 6

function unitsOf(currency: string): Units {
  const code = currency.toLowerCase()
  if (NO_DECIMALS.includes(code)) return { decimals: 0, step: 1 }
  if (THREE_DECIMALS.includes(code)) return { decimals: 3, step: 10 }
  return { decimals: 2, step: WHOLE.includes(code) ? 100 : 1 }
}

/** @returns micro-units; undefined for what is not an amount of minor units */
export function microsOfMinor(minor: number, currency: string): number | undefined {
  const micros = minor * 10 ** (MICRO_DECIMALS - unitsOf(currency).decimals)
  return Number.isSafeInteger(minor) && minor >= 0 && Number.isSafeInteger(micros) ? micros : undefined
}

/** @param amount decimal text @returns minor units; undefined for text that is not an amount, and for an amount that the currency does not have */
export function minorOf(amount: string, currency: string): number | undefined {
  const { decimals, step } = unitsOf(currency)
  const micros = parseMicros(amount)
  const perMinor = 10 ** (MICRO_DECIMALS - decimals)
  if (micros === undefined || micros === 0 || micros % perMinor !== 0) return undefined
  const minor = micros / perMinor
  return minor % step === 0 ? minor : undefined
}
