import { describe, expect, it } from 'vitest'
import { createAPI, Refused, Unreachable } from './api.ts'

interface Sent {
  readonly path: string
  readonly init: RequestInit
}

/** An API whose server answers every request like this. */
function apiAnswering(answer: () => Response | Promise<Response>): { api: ReturnType<typeof createAPI>; sent: Sent[]; left: string[] } {
  const sent: Sent[] = []
  const left: string[] = []
  const api = createAPI({
    fetch: async (path, init) => {
      sent.push({ path, init })
      return answer()
    },
    here: () => '/settings?error=x',
    leave: (path) => left.push(path),
  })
  return { api, sent, left }
}

const json = (status: number, body: unknown): Response => Response.json(body, { status })
const refusal = (status: number, code: string, more: object = {}) =>
  json(status, { error: { code, message: 'No.', requestID: 'r1', ...more } })
const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no rejection',
    (error: unknown) => error,
  )

describe('a request', () => {
  it('sends JSON in its body, and puts nothing that was typed into the path', async () => {
    const { api, sent } = apiAnswering(() => new Response(null, { status: 204 }))
    await api.changePassword('next password 1', 'current password')
    expect(sent).toEqual([
      {
        path: '/api/password',
        init: {
          method: 'POST',
          headers: { accept: 'application/json', 'content-type': 'application/json' },
          cache: 'no-store',
          body: '{"current":"current password","next":"next password 1"}',
        },
      },
    ])
  })

  it('keeps an id from another place within its part of the path', async () => {
    const { api, sent } = apiAnswering(() => json(200, {}))
    await api.endSession('../me?x=1#y')
    await api.suspendKey('../me')
    expect(sent.map(({ path }) => path)).toEqual(['/api/sessions/..%2Fme%3Fx%3D1%23y', '/api/keys/..%2Fme/suspend'])
  })

  it('leaves out a current password that the person does not have', async () => {
    const { api, sent } = apiAnswering(() => json(200, {}))
    await api.changePassword('next password 1')
    expect(sent.map(({ init }) => init.body)).toEqual(['{"next":"next password 1"}'])
  })
})

describe('a refusal', () => {
  it('says why, at which field, and under which request id', async () => {
    const { api } = apiAnswering(() => refusal(422, 'invalid', { fields: { name: 'Too long.' } }))
    const error = await rejection(api.rename('x'))
    expect(error).toBeInstanceOf(Refused)
    expect(error).toMatchObject({ code: 'invalid', message: 'No.', fields: { name: 'Too long.' }, requestID: 'r1' })
  })

  it('for an ended session leads to the sign-in page and back, and shows no error before', async () => {
    const { api, left } = apiAnswering(() => refusal(401, 'session-ended'))
    const outcome = api.rename('x').then(
      () => 'resolved',
      () => 'rejected',
    )
    const never = await Promise.race([outcome, new Promise((resolve) => setImmediate(() => resolve('pending')))])
    expect([never, left]).toEqual(['pending', ['/sign-in?reason=session-ended&next=%2Fsettings%3Ferror%3Dx']])
  })

  it.each([
    [502, 'unavailable'],
    [503, 'unavailable'],
    [504, 'unavailable'],
    [500, 'internal'],
    [413, 'internal'],
  ])('with status %i and a page of a proxy is %s, without a request id', async (status, code) => {
    const { api, left } = apiAnswering(() => new Response('<h1>Bad gateway</h1>', { status }))
    expect([await rejection(api.me()), left]).toMatchObject([{ code, requestID: '', fields: {} }, []])
  })

  it.each([null, [], 'text', { error: null }, { error: 'text' }, { error: { code: 7 } }])(
    'with the body %j is not a crash',
    async (body) => {
      const { api } = apiAnswering(() => json(500, body))
      expect(await rejection(api.me())).toMatchObject({ name: 'Refused', code: 'internal' })
    },
  )
})

it('a server that does not answer is told apart from one that refuses', async () => {
  const { api } = apiAnswering(() => Promise.reject(new TypeError('Failed to fetch')))
  expect(await rejection(api.me())).toBeInstanceOf(Unreachable)
})

it('an answer that is cut off counts as no answer, because the change may have been made', async () => {
  const { api } = apiAnswering(() => new Response('{"value":"sk-'))
  expect(await rejection(api.replaceKey('k-1', 0))).toBeInstanceOf(Unreachable)
})
