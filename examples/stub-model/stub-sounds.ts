/** The transcriptions and the speech of the stub model. */
import { openaiFailure, spaced, type StubAnswer, type StubFormat, unnamedEvents, wordsOf } from './stub-format.ts'

const BYTES_PER_TOKEN = 1_000

export const transcriptionsFormat: StubFormat = {
  inputTokens: ({ fileBytes }) => Math.max(1, Math.ceil(fileBytes / BYTES_PER_TOKEN)),
  plain: (answer) => JSON.stringify({ text: answer.words.join(' '), usage: usageOf(answer) }),
  pieces: (answer) =>
    unnamedEvents([
      ...spaced(answer.words).map((delta) => ({ type: 'transcript.text.delta', delta })),
      { type: 'transcript.text.done', text: answer.words.join(' '), usage: usageOf(answer) },
    ]),
  failure: openaiFailure,
}

function usageOf({ usage, inputTokens, words }: StubAnswer): object | undefined {
  const counts = { input_tokens: inputTokens, input_token_details: { text_tokens: 0, audio_tokens: inputTokens } }
  return usage ? { type: 'tokens', ...counts, output_tokens: words.length, total_tokens: inputTokens + words.length } : undefined
}

/** Samples per second of a sound with one byte per sample. */
const SAMPLE_RATE = 8_000
/** A quarter of a second. */
const BYTES_PER_WORD = SAMPLE_RATE / 4
const SILENCE = 128

/** A file of silence (WAV), as long as the words take. Servers report no usage with sound. */
export const speechFormat: StubFormat = {
  inputTokens: ({ input }) => wordsOf(input),
  pieces: ({ words }) => [wavHead(words.length * BYTES_PER_WORD), ...words.map(() => Buffer.alloc(BYTES_PER_WORD, SILENCE))],
  failure: openaiFailure,
}

function wavHead(bytes: number): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF')
  head.writeUInt32LE(36 + bytes, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20) // not compressed
  head.writeUInt16LE(1, 22) // one channel
  head.writeUInt32LE(SAMPLE_RATE, 24)
  head.writeUInt32LE(SAMPLE_RATE, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(bytes, 40)
  return head
}
