/** The standard output of `make run`: one stream for the log, as text or as JSON, and for printed texts, so that their order stays. */
import { pino } from 'pino'
import { plain, plainLines } from '#contract/values/plain-text.ts'
import { createLog, type LOG_LEVELS, type ProcessLog } from '#platform/log.ts'

const STDOUT = 1
/** Fields that every line has, or that the line shows in another form. */
const COMMON = new Set(['level', 'time', 'program', 'msg', 'err', 'cause'])
/** Messages about the parts of Headgate, shown with `LOG_LEVEL=debug`. */
const INTERNAL = /^(projection (rebuilt|loaded)|records are written in version|listening$)/
const REQUEST = /^request( failed)?$/

type Fields = Readonly<Record<string, unknown>>

/** The log, and the texts printed beside it. */
export interface Output extends ProcessLog {
  readonly print: (text: string) => void
}

/**
 * Writes in the background: a reader that stops reading does not stop the gateway.
 * @param isText lines for people; otherwise JSON
 */
export function openOutput(isText: boolean, logLevel: (typeof LOG_LEVELS)[number]): Output {
  const stream = pino.destination({ dest: STDOUT, sync: false, minLength: 0 })
  stream.on('error', () => undefined) // a closed reader is no reason to end
  const write = (text: string | undefined): void => {
    if (text !== undefined) stream.write(text)
  }
  const showAll = logLevel === 'debug'
  const lines = { write: isText ? (line: string) => write(textLine(line, showAll)) : write, flushSync: () => stream.flushSync() }
  return { ...createLog('standalone', logLevel, lines), print: (text) => write(plainLines(text)) }
}

/**
 * Turns a JSON line of the log into a line for a terminal: time, then the event.
 * @param line one line that pino has written
 * @param showAll also messages for developers of Headgate
 * @returns the line with its end; undefined for an omitted line
 */
export function textLine(line: string, showAll = false): string | undefined {
  const fields = fieldsOf(line)
  if (fields === undefined) return plainLines(line)
  const message = text(fields['msg'])
  const level = text(fields['level'])
  if (level === 'info' && !showAll && INTERNAL.test(message)) return undefined
  const shown = REQUEST.test(message) ? requestText(fields) : messageText(message, fields, level !== 'info' || showAll)
  return plainLines(`${timeOf(fields['time'])}  ${level === 'info' ? '' : `${level.toUpperCase()}  `}${shown}\n`)
}

function requestText(fields: Fields): string {
  const { method, path, route, status, durationMs, apiKey, keyID, model, backend, error, clientGone } = fields
  const answer = clientGone === true ? `${text(status) || '-'} (the client left)` : text(status) || '-'
  const who = text(apiKey) || text(keyID)
  const asked = model === undefined ? '' : `${text(model)}${backend === undefined ? '' : ` -> ${text(backend)}`}`
  const took = typeof durationMs === 'number' ? `${Math.round(durationMs)} ms` : ''
  const parts = [answer, `${text(method)} ${text(path ?? route)}`, who, asked, took, text(error), causeOf(fields['cause'])]
  return parts.filter((part) => part !== '').join('  ')
}

function messageText(message: string, fields: Fields, withFields: boolean): string {
  const isSaid = fields['change'] !== undefined // the message of a line about objects says what its fields say
  const more = withFields && !isSaid ? Object.entries(fields).filter(([name]) => !COMMON.has(name)) : []
  const shown = more.map(([name, value]) => `${name}=${text(value)}`).join(' ')
  return [message, shown === '' ? '' : `(${shown})`, causeOf(fields['cause']), causeOf(fields['err'])]
    .filter((part) => part !== '')
    .join('  ')
}

/** The cause in a line of pino or of the access log: the messages from the outer error to the inner one, and the stack if a bug is likely. */
function causeOf(cause: unknown): string {
  if (typeof cause === 'string') return cause
  if (typeof cause !== 'object' || cause === null) return ''
  const { message, stack, cause: inner } = cause as Fields
  if (typeof stack === 'string') return stack
  return [text(message), causeOf(inner)].filter((part) => part !== '').join('; ')
}

function timeOf(time: unknown): string {
  const date = new Date(text(time))
  return Number.isNaN(date.getTime()) ? '--:--:--' : date.toTimeString().slice(0, 8)
}

function text(value: unknown): string {
  if (value === undefined || value === null) return ''
  return plain(typeof value === 'object' ? JSON.stringify(value) : String(value as string | number | boolean))
}

function fieldsOf(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined
  } catch {
    return undefined // not a line of the log: printed unchanged
  }
}
