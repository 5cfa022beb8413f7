import { createServer } from 'node:http'
import { describe, expect, test } from 'vitest'
import { exposureWarning, listen, localURL } from './listen-address.ts'

describe('the address of the gateway', () => {
  test.each([
    ['127.0.0.1', 'http://127.0.0.1:8080'],
    ['0.0.0.0', 'http://127.0.0.1:8080'],
    ['::', 'http://127.0.0.1:8080'],
    ['::1', 'http://[::1]:8080'],
    ['localhost', 'http://localhost:8080'],
    ['192.168.1.5', 'http://192.168.1.5:8080'],
  ])('HOST=%s is reached at %s', (host, url) => {
    expect(localURL(host, 8080)).toBe(url)
  })

  test.each(['0.0.0.0', '::', '127.0.0.1', 'localhost'])('a request to the URL of HOST=%s arrives', async (host) => {
    const server = createServer((_, response) => void response.end('here'))
    const port = await listen(server, { host, port: 0 })
    expect(await (await fetch(localURL(host, port))).text()).toBe('here')
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  test('that others can reach comes with a warning about their access and the missing TLS, and with the remedy', () => {
    for (const host of ['127.0.0.1', '127.0.0.2', '::1', 'localhost']) expect(exposureWarning(host)).toBeUndefined()
    for (const host of ['0.0.0.0', '::', '192.168.1.5', 'my-machine'])
      expect(exposureWarning(host)).toMatch(new RegExp(`^HOST=${host}: every machine .*no TLS.*Set HOST to 127\\.0\\.0\\.1`))
  })

  test.each(['192.0.2.1', 'no.such.host.invalid'])(
    'that this machine does not have ends the start with the setting to change: %s',
    async (host) => {
      await expect(listen(createServer(), { host, port: 0 })).rejects.toThrow(
        new RegExp(`^HOST: "${host}" is not an address of this machine \\(E\\w+\\); set HOST to 127\\.0\\.0\\.1`),
      )
    },
  )
})
