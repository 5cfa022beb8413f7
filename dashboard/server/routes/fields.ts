/** Reads the fields of requests. */
import type { Exchange } from '../http/exchange.ts'
import { Refused } from '../http/refused.ts'

/** @returns the text of a field of a form; '' without one */
export function formText({ body }: Exchange, name: string): string {
  const value = body[name]
  return typeof value === 'string' ? value : ''
}

/** @returns a text of a JSON body @throws Refused if it is not text, or longer than `most` characters */
export function jsonText({ body }: Exchange, name: string, most = 512): string {
  const value = body[name]
  if (typeof value === 'string' && value.length <= most) return value
  throw new Refused('invalid', `The field ${name} is missing or is not text.`, { fields: { [name]: 'This must be a text.' } })
}

/** @returns undefined without the field */
export function optionalText(exchange: Exchange, name: string): string | undefined {
  return exchange.body[name] === undefined ? undefined : jsonText(exchange, name)
}
