/**
 * The dialects by path. Each one is a route of model calls. A function cannot be sent to another thread, so the worker for large bodies gets the
 * path.
 */
import { chatCompletions } from './chat-completions.ts'
import type { Dialect } from './dialect.ts'
import { messages } from './messages.ts'

export const DIALECTS: ReadonlyMap<string, Dialect> = new Map([chatCompletions, messages].map((dialect) => [dialect.path, dialect]))
