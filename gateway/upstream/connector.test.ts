import { expect, test } from 'vitest'
import { connectorWithin } from './upstream-pools.ts'

test('a connection fails if it is not open within its time, including the look-up of the name', async () => {
  const silent = (): void => undefined
  const connect = connectorWithin(20, { lookup: silent })
  const error = await new Promise<Error | null>((resolve) =>
    connect({ hostname: 'silent.example', protocol: 'http:', port: '80' }, (...[failure]) => resolve(failure)),
  )
  expect(error).toMatchObject({ code: 'UND_ERR_CONNECT_TIMEOUT', message: 'no connection within 20 ms' })
})
