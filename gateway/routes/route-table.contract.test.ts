import { afterEach, describe, expect, test } from 'vitest'
import { startFront, type FrontGateway } from '../../test/support/front-gateway.ts'
import { BodyReader } from '../dialects/body-reader.ts'
import { commonHeaders } from '../http/exchange.ts'
import { systemClock } from '#platform/clock.ts'
import { ROUTES, type Route } from './route-table.ts'

let front: FrontGateway
afterEach(() => front.stop())

describe('a new route', () => {
  const time: Route = {
    methods: 'GET, HEAD',
    paths: ['/v1/toy/{id}'],
    label: '/v1/toy',
    handler: () => (exchange, path) => {
      exchange.response.writeHead(200, commonHeaders(exchange.requestId)).end(path)
    },
  }

  test('is one row: it is served, other methods are refused by name, and its label is counted', async () => {
    front = await startFront({ routes: [...ROUTES, time] })
    expect(await (await fetch(`${front.base}/v1/toy/a/b`)).text()).toBe('/v1/toy/a/b')
    const refused = await fetch(`${front.base}/v1/toy/a`, { method: 'POST' })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(front.finished.map(({ route }) => route)).toEqual(['/v1/toy', 'other'])
  })
})

test('large bodies of every route are left to the worker', async () => {
  const bodyReader = new BodyReader({ log: console, clock: systemClock, maxBodyBytes: 2 ** 20 }) // its worker was not started
  front = await startFront({ app: { bodyReader } })
  const headers = { authorization: `Bearer ${front.issue()}` }
  for (const path of ROUTES.filter(({ methods }) => methods === 'POST').flatMap(({ paths }) => paths)) {
    const type = path.endsWith('transcriptions') ? 'multipart/form-data; boundary=x' : 'application/json'
    const { status } = await fetch(front.base + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': type },
      body: ' '.repeat(300_000),
    })
    expect([path, status]).toEqual([path, 500])
  }
})
