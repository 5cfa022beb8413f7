import { describe, expect, test } from 'vitest'
import { mintCredential } from '#contract/values/credential.ts'
import { unknownPaths } from './near-route.ts'
import { ROUTES } from './route-table.ts'

const refuse = unknownPaths(ROUTES)
const message = (path: string, method = 'POST'): string => refuse(method, path).message
const ALL =
  'this gateway serves POST /v1/chat/completions, POST /v1/completions, POST /v1/responses, POST /v1/embeddings, POST /v1/rerank, ' +
  'POST /v1/audio/transcriptions, POST /v1/audio/speech, POST /v1/messages, POST /v1/messages/count_tokens, GET /v1/models, GET /v1/key'
const BASE = '; a base URL ends in /v1 for OpenAI clients and has no path for Anthropic clients'

describe('an unknown path', () => {
  test('is repeated with its method, and the routes are named', () => {
    expect(message('/v1/chat', 'GET')).toBe(`Invalid URL (GET /v1/chat): ${ALL}`)
  })

  test.each([
    ['/chat/completions', `did you mean POST /v1/chat/completions? The path lacks /v1${BASE}`],
    ['/embeddings', `did you mean POST /v1/embeddings? The path lacks /v1${BASE}`],
    ['/messages', `did you mean POST /v1/messages? The path lacks /v1${BASE}`],
    ['/v1/v1/chat/completions', `did you mean POST /v1/chat/completions? The path has /v1 more than once${BASE}`],
    ['/v1/v1/v1/messages', `did you mean POST /v1/messages? The path has /v1 more than once${BASE}`],
    ['/v1/chat/completions/', 'did you mean POST /v1/chat/completions? The path ends with a slash'],
    ['/v1//messages', 'did you mean POST /v1/messages? The path has two slashes in a row'],
    ['//v1/models/', 'did you mean GET /v1/models? The path has two slashes in a row and ends with a slash'],
    ['/v1/Chat/Completions', 'did you mean POST /v1/chat/completions? The path differs in upper and lower case'],
    ['/V1/models/llama', 'did you mean GET /v1/models/{id}? The path differs in upper and lower case'],
    ['/v1/chat/completions/chat/completions', `did you mean POST /v1/chat/completions? The path has extra segments before it${BASE}`],
    ['/gateway/v1/messages', `did you mean POST /v1/messages? The path has extra segments before it${BASE}`],
    ['/v1/chat/completion', 'did you mean POST /v1/chat/completions?'],
    ['/v1/mesages', 'did you mean POST /v1/messages?'],
    ['/v1/model', 'did you mean GET /v1/models?'],
    ['/chat/completion', `did you mean POST /v1/chat/completions? The path lacks /v1${BASE}`],
    ['/openai/deployments/x/chat/completions', 'this is a path of Azure OpenAI; use the plain OpenAI client'],
    ['/api/chat', "this is a path of Ollama's own API; use its OpenAI-compatible one"],
  ])('%s: %s', (path, hint) => {
    expect(message(path)).toContain(`): ${hint}`)
  })

  test.each(['/v1/responses/resp_1', '/v1/audio/translations'])(
    '%s is known and not served, which is another matter than a typing error',
    (path) => {
      expect(message(path)).toContain(`): this gateway does not serve this route; ${ALL}`)
    },
  )

  test.each([
    ...['/v1/moderations', '/v1/files', '/v1/batches', '/v1/images/generations', '/v1/messages/batches', '/v1/realtime', '/v1/uploads'],
    ...['/v1/fine_tuning/jobs', '/v1/vector_stores', '/v1/assistants', '/v1/threads/t1/runs', '/v1/conversations', '/v1/videos'],
  ])('%s, which nobody plans, promises nothing', (path) => {
    expect(message(path)).toContain('): this gateway does not serve this route; ')
    expect(message(path)).not.toMatch(/\byet\b|did you mean/)
  })

  test.each(['/v1/chat/completion', '/v1/embedding'])('%s has only a typing error: the answer says no more than that', (path) => {
    expect(message(path)).toMatch(/\?$/)
  })

  test('nothing of it that may be a key is repeated, and it is bounded', () => {
    const { credential } = mintCredential()
    for (const part of [credential, credential.replace('-', '%2D'), credential.slice(0, 30), `x${credential}`, 'sk-1234567890abcdefghij'])
      expect(JSON.stringify([message(`/v1/${part}`), refuse('GET', `/v1/${part}`).params])).not.toContain(part.slice(10, 20))
    expect(message(`/v1/${'a/'.repeat(5_000)}`).length).toBeLessThan(500)
    expect(message('/v1/a\u00e9\u202eb')).toContain('(POST /v1/…)')
  })
})
