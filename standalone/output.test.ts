import { describe, expect, test } from 'vitest'
import { textLine } from './output.ts'

const line = (fields: Record<string, unknown>, showAll = false): string =>
  (
    textLine(`${JSON.stringify({ level: 'info', time: '2026-01-02T03:04:05.678Z', program: 'standalone', ...fields })}\n`, showAll) ??
    'none'
  )
    .trimEnd()
    .replace(/^\d\d:\d\d:\d\d {2}/, '')

describe('a line of the log on a terminal', () => {
  test('begins with the time, and one that is not JSON is printed unchanged', () => {
    expect(textLine(JSON.stringify({ level: 'info', time: '2026-01-02T03:04:05.678Z', msg: 'Text' }))).toMatch(/^\d\d:\d\d:\d\d {2}Text\n$/)
    expect(textLine('plain text\n')).toBe('plain text\n')
  })

  test('has no characters of others that steer a terminal', () => {
    const evil = 'a\u001b[2J\u009b1m\u202eb'
    expect(line({ level: 'warn', msg: `${evil}.yaml`, object: evil, cause: { message: evil } })).toBe(
      'WARN  a?[2J?1m?b.yaml  (object=a?[2J?1m?b)  a?[2J?1m?b',
    )
    expect(textLine(`${evil}\n`)).toBe('a?[2J?1m?b\n')
  })

  test('of a warning is marked, and shows the fields and the cause', () => {
    expect(line({ level: 'warn', msg: 'write failed', object: 'demo/a', retryInMs: 5, cause: { message: 'disk full' } })).toBe(
      'WARN  write failed  (object=demo/a retryInMs=5)  disk full',
    )
    expect(line({ level: 'error', msg: 'reconcile met a bug', err: { message: 'boom', stack: 'TypeError: boom\n    at x' } })).toBe(
      'ERROR  reconcile met a bug  TypeError: boom\n    at x',
    )
  })

  test('of an object says what its fields say, and does not repeat them', () => {
    const fields = { change: 'Condition', kind: 'ApiKey', namespace: 'demo', name: 'a', type: 'Ready', reason: 'Expired', message: 'Why.' }
    const msg = 'ApiKey demo/a: not ready (Expired): Why.'
    expect(line({ level: 'warn', msg, ...fields })).toBe(`WARN  ${msg}`)
    expect(line({ msg, ...fields }, true)).toBe(msg)
  })

  test('of a request shows its answer, its route and the ApiKey', () => {
    const request = {
      msg: 'request',
      method: 'POST',
      route: '/v1/chat/completions',
      durationMs: 11.6,
      status: 200,
      keyID: 'abc',
      requestId: 'req_1',
    }
    expect(line({ ...request, apiKey: 'demo/a', model: 'llama', backend: 'main' })).toBe(
      '200  POST /v1/chat/completions  demo/a  llama -> main  12 ms',
    )
    expect(line({ ...request, status: 404, keyID: undefined, route: 'other', path: '/chat/completions', error: 'unknownPath' })).toBe(
      '404  POST /chat/completions  12 ms  unknownPath',
    )
    const failed = { ...request, msg: 'request failed', level: 'warn', status: 502, cause: { message: 'backend answered 500' } }
    expect(line({ ...failed, error: 'backendError' })).toBe(
      'WARN  502  POST /v1/chat/completions  abc  12 ms  backendError  backend answered 500',
    )
    const inner = { name: 'Error', code: 'ECONNRESET', message: 'read ECONNRESET' }
    const broken = {
      ...failed,
      status: 200,
      error: 'streamBroken',
      cause: { message: 'Backend error: the connection to it was lost', cause: inner },
    }
    expect(line(broken)).toContain('streamBroken  Backend error: the connection to it was lost; read ECONNRESET')
    expect(line({ ...request, status: undefined, clientGone: true })).toContain('- (the client left)  POST')
  })

  test('about the parts of Headgate is omitted, unless everything is shown', () => {
    for (const msg of ['projection rebuilt because the store is empty: 1 records', 'projection loaded', 'listening']) {
      expect(line({ msg, epoch: 'e' })).toBe('none')
      expect(line({ msg, epoch: 'e' }, true)).toBe(`${msg}  (epoch=e)`)
      expect(line({ msg, level: 'warn' })).toContain(msg)
    }
  })
})
