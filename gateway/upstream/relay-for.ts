import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { FileRelay } from './relay-file.ts'
import { ErrorAnswer, PlainRelay } from './relay-plain.ts'
import type { StreamRelay } from './relay-stream.ts'
import { WholeRelay } from './relay-whole.ts'

/**
 * Chooses the relay of an answer by its status and type.
 * @param stream of a request for a stream
 * @returns undefined for a stream that the client has not asked for: no relay reads it
 */
export function relayFor(port: RelayPort, head: AnswerHead, stream: StreamRelay | undefined): AnswerRelay | undefined {
  const type = String(head.headers['content-type'] ?? '').toLowerCase()
  if (head.status !== 200) return new ErrorAnswer(port, head)
  if (type.startsWith('text/event-stream')) return stream?.answeredBy(head)
  const isKept = port.translated === undefined && mayBePlain(port, stream)
  if (!isKept && type.includes('json')) return new WholeRelay(port, head, stream)
  return isKept || stream === undefined ? plainRelayFor(port, head, type) : new ErrorAnswer(port, head)
}

/** Whether the client takes a plain answer as it is. */
function mayBePlain({ job }: RelayPort, stream: StreamRelay | undefined): boolean {
  return stream === undefined || (job.dialect.answers === 'Any' && !stream.isOpen) // Whisper ignores `stream`
}

function plainRelayFor(port: RelayPort, head: AnswerHead, type: string): AnswerRelay {
  if (type.includes('json')) return new PlainRelay(port, head)
  return (port.job.dialect.answers === 'Any' ? FileRelay.of(port, head) : undefined) ?? new ErrorAnswer(port, head)
}
