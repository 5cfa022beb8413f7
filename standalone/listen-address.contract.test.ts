import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { listenOn } from './listen-address.ts'

test.each([
  ['127.0.0.1', false],
  ['localhost', false],
  ['0.0.0.0', true],
  ['::', true],
])('the URL of HOST=%s works; a warning says who can reach it: %s', async (host, isExposed) => {
  const warnings: unknown[] = []
  const server = createServer((_, response) => void response.end('here'))
  const url = await listenOn(server, host, 0, { warn: (text: unknown) => void warnings.push(text) })
  expect(await (await fetch(url)).text()).toBe('here')
  const warning = expect.stringMatching(new RegExp(`^HOST=${host}: every machine .*no TLS.*Set HOST to 127\\.0\\.0\\.1`)) as unknown
  expect(warnings).toEqual(isExposed ? [warning] : [])
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

test.each(['192.0.2.1', 'no.such.host.invalid'])('HOST=%s, which this machine does not have, is named with the remedy', async (host) => {
  await expect(listenOn(createServer(), host, 0, { warn: () => undefined })).rejects.toThrow(
    new RegExp(`^HOST: "${host}" is not an address of this machine \\(E\\w+\\); set HOST to 127\\.0\\.0\\.1`),
  )
})
