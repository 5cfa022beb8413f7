/** Requests, answers, and the keys and models of the projection. */
import { encodeKeyRecord } from '#contract/records/key-record.ts'
import { encodeModelRecord } from '#contract/records/model-record.ts'
import type { ProjectionStore } from '../../operator/projection/store.ts'
import { issuedKey, writer } from '../support/records.ts'

/** Keys in the table. */
export const KEY_COUNT = 10_000
/** Keys that the load uses in turn. */
export const USED_KEYS = 256
/** Size of a plain answer, bytes. */
export const ANSWER_BYTES = 600
/** Name of the model behind the instant mock, also at the mock itself. */
export const PLAIN_MODEL = 'bench-plain'
/** Name of the model behind the mock that streams. */
export const STREAM_MODEL = 'bench-stream'

/** The marker in a body whose stream is silent after its first event. */
export const IDLE_USER = '"user":"idle"'

const NAMESPACE = 'bench'
const PROSE = 'Summarise the incident of last night in plain words for the people on call: what broke first, and why did no alarm tell us? '

/** A chat request of exactly this size, with one long system message. */
export function chatBody(bytes: number, stream: boolean): string {
  const body = (text: string): string =>
    JSON.stringify({
      model: stream ? STREAM_MODEL : PLAIN_MODEL,
      messages: [
        { role: 'system', content: text },
        { role: 'user', content: 'And what should be done first?' },
      ],
      max_tokens: 256,
      temperature: 0.2,
      ...(stream ? { stream: true } : {}),
    })
  const room = bytes - body('').length
  return body(PROSE.repeat(Math.ceil(room / PROSE.length)).slice(0, room))
}

/** A chat request whose stream is silent after its first event. */
export function idleBody(): string {
  return `{"model":"${STREAM_MODEL}","messages":[{"role":"user","content":"Wait."}],"stream":true,${IDLE_USER}}`
}

/** A chat completion of ANSWER_BYTES. */
export function chatAnswer(): string {
  const answer = (content: string): string =>
    JSON.stringify({
      id: 'chatcmpl-bench',
      object: 'chat.completion',
      createdMs: 1_790_000_000,
      model: PLAIN_MODEL,
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 321, completion_tokens: 64, total_tokens: 385 },
    })
  return answer('word '.repeat(ANSWER_BYTES).slice(0, ANSWER_BYTES - answer('').length))
}

/** The two model servers, `ip:port`. */
export interface Mocks {
  readonly plain: string
  readonly stream: string
}

/**
 * Fills the projection as the operator does after a rebuild.
 * @returns the Credentials of all keys
 */
export async function fillProjection(store: ProjectionStore, mocks: Mocks): Promise<readonly string[]> {
  const scope = { namespace: NAMESPACE, models: [[PLAIN_MODEL, STREAM_MODEL]] }
  const keys = Array.from({ length: KEY_COUNT }, (_, i) => issuedKey(`bench-key-${i}`, scope))
  const models = [modelText(PLAIN_MODEL, mocks.plain), modelText(STREAM_MODEL, mocks.stream)]
  const outcome = await store.rebuild(writer(), 'bench', 1, [
    ...keys.map(({ record }) => ({ kind: 'key' as const, op: 'put' as const, id: record.uid, text: encodeKeyRecord(record) })),
    ...models.map(({ uid, text }) => ({ kind: 'model' as const, op: 'put' as const, id: uid, text })),
  ])
  if (outcome.outcome !== 'written') throw new Error(`the projection could not be filled: ${outcome.outcome}`)
  return keys.map(({ credential }) => credential)
}

/** Credentials that are in no table. */
export function unknownKeys(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => issuedKey(`unknown-${i}`).credential)
}

function modelText(name: string, endpoint: string): { readonly uid: string; readonly text: string } {
  const uid = `uid-${name}`
  const backend = {
    ...{ name: 'mock', endpoints: [endpoint], service: null, url: null, upstreamModel: name, weight: 1 },
    ...{ messages: 'Native' as const, credentialSum: null, formerCredentialSum: null },
  }
  const text = encodeModelRecord({
    ...{
      version: 1,
      revision: 0,
      uid,
      namespace: NAMESPACE,
      name,
      createdMs: 0,
      servedName: name,
      aliases: [],
      allowedNamespaces: [NAMESPACE],
    },
    ...{ timeouts: { firstByteSeconds: 600, idleSeconds: 120, totalSeconds: 3600 }, backends: [backend] },
  })
  return { uid, text }
}
