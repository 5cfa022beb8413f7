/** All dialects. `docs/extending.md` says how to add one. */
import { chatCompletions } from './chat-completions.ts'
import { completions } from './completions.ts'
import { countTokens } from './count-tokens.ts'
import type { Dialect } from './dialect.ts'
import { embeddings } from './embeddings.ts'
import { messages } from './messages.ts'
import { rerank } from './rerank.ts'
import { responses } from './responses.ts'
import { speech } from './speech.ts'
import { transcriptions } from './transcriptions.ts'

const ALL: readonly Dialect[] = [
  ...[chatCompletions, completions, responses, embeddings, rerank, transcriptions, speech],
  ...[messages, countTokens],
]

/** The routes of model calls. The worker for large bodies gets the path, because a function cannot be sent to another thread. */
export const DIALECTS: ReadonlyMap<string, Dialect> = new Map(ALL.map((dialect) => [dialect.path, dialect]))
