import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { FileRelay } from './relay-file.ts'
import { ErrorAnswer, PlainRelay } from './relay-plain.ts'
import { TranslatedRelay } from './relay-translated.ts'
import type { StreamRelay } from './relay-stream.ts'

/** Chooses the relay of an answer by its status and type. @param stream of a request for a stream */
export function relayFor(port: RelayPort, head: AnswerHead, stream: StreamRelay | undefined): AnswerRelay {
  const type = String(head.headers['content-type'] ?? '').toLowerCase()
  if (head.status !== 200) return new ErrorAnswer(port, head)
  if (type.startsWith('text/event-stream') && stream !== undefined) return stream.answeredBy(head)
  if (type.includes('json') && port.translated) return new TranslatedRelay(port, head, port.translated, stream)
  const mayBePlain = stream === undefined || (port.job.dialect.answers === 'Any' && !stream.isOpen) // Whisper ignores `stream`
  return mayBePlain ? plainRelayFor(port, head, type) : new ErrorAnswer(port, head)
}

function plainRelayFor(port: RelayPort, head: AnswerHead, type: string): AnswerRelay {
  if (type.includes('json')) return new PlainRelay(port, head)
  return (port.job.dialect.answers === 'Any' ? FileRelay.of(port, head) : undefined) ?? new ErrorAnswer(port, head)
}
