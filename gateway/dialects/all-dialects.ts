/** The dialects by their path: a function cannot cross to another thread, so the worker that reads large bodies is told the path. */
import { chatCompletions } from './chat-completions.ts'
import type { Dialect } from './dialect.ts'
import { messages } from './messages.ts'

export const DIALECTS: ReadonlyMap<string, Dialect> = new Map([chatCompletions, messages].map((dialect) => [dialect.path, dialect]))
