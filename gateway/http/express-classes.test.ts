import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { expect, test, vi } from 'vitest'
import { messageClasses } from './server.ts'

test('Express still sets the prototypes that requests and answers are born with, and keeps their locals', async () => {
  const app = express()
  const born = new Map<object, { prototype: unknown; locals: unknown }>()
  const seen: { set: readonly unknown[][]; locals: unknown; isSame: boolean }[] = []
  app.get('/', (request, response) => {
    const set = setPrototypeOf.mock.calls.filter(([target]) => target === request || target === response)
    seen.push({
      set: set.map(([target, prototype]) => [target === request ? 'request' : 'response', prototype === born.get(target)?.prototype]),
      locals: response.locals,
      isSame: response.locals === born.get(response)?.locals,
    })
    response.json({ ip: request.ip })
  })
  const classes = messageClasses(app)
  const server = createServer(classes, (request, response) => {
    born.set(request, { prototype: Object.getPrototypeOf(request), locals: undefined })
    born.set(response, { prototype: Object.getPrototypeOf(response), locals: Reflect.get(response, 'locals') })
    app(request, response)
  })
  const setPrototypeOf = vi.spyOn(Object, 'setPrototypeOf')
  try {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    expect(await answer.json()).toEqual({ ip: '127.0.0.1' }) // Express's own methods work on them
    expect(seen).toEqual([
      {
        set: [
          ['request', true],
          ['response', true],
        ],
        locals: {},
        isSame: true,
      },
    ])
  } finally {
    setPrototypeOf.mockRestore()
    server.close()
  }
})

test('a listener that is no Express app keeps the classes of Node', () => {
  expect(messageClasses(() => undefined)).toEqual({})
})
