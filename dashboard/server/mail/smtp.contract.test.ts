/** Mails over TCP: a server that is away, refuses, hangs, or dies at the worst moment. */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { DashboardWorld, MovedClock, PASSWORD } from '../../../test/support/dashboard-world.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { MailServer } from '../../../test/support/mail-server.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { smtpTransport } from './transport.ts'

const SENDER = { from: 'Headgate <no-reply@example.com>', site: { name: 'Headgate', url: 'http://localhost' } }
const MAYA = 'maya@fernwood.example'

async function opened(port: number): Promise<DashboardWorld> {
  const settings = { host: '127.0.0.1', port, security: 'none', username: undefined, password: undefined } as const
  return await DashboardWorld.open({ folder: temporaryFolder(), transport: smtpTransport(settings, SENDER) })
}

test('a mail server that is away at first delays the mail alone: the sign-up is answered, and the mail comes later', async () => {
  const port = await freePort()
  await using world = await opened(port)
  const browser = world.browser()
  expect((await browser.post('/sign-up', { email: MAYA, password: PASSWORD })).location).toBe('/check-your-mail')
  await failed(world, 1)
  const server = await MailServer.start(port)
  world.clock.move(15_000)
  const { links } = await server.nextMail(MAYA)
  expect((await browser.post('/verify', { token: new URL(links[0] ?? '').searchParams.get('token') ?? '' })).location).toBe('/')
  await server.stop()
})

test('a mail that the server refuses for now comes later, and one that it refuses for good holds nobody up', async () => {
  const server = await MailServer.start()
  await using world = await opened(server.port)
  server.fail(1)
  await world.browser().post('/sign-up', { email: MAYA, password: PASSWORD })
  await failed(world, 1)
  world.clock.move(15_000)
  await server.nextMail(MAYA)
  server.fail('reject')
  await world.browser().post('/sign-up', { email: 'nobody@fernwood.example', password: PASSWORD })
  await failed(world, 2)
  server.fail(0)
  await world.browser().post('/sign-up', { email: 'sam@fernwood.example', password: PASSWORD })
  await server.nextMail('sam@fernwood.example')
  await server.stop()
})

test('a connection that breaks after the mail and before its answer brings the mail a second time, with the same Message-ID', async () => {
  const server = await roughServer()
  await using world = await opened(server.port)
  server.behaviour = 'breaks-after-mail'
  await world.browser().post('/sign-up', { email: MAYA, password: PASSWORD })
  await failed(world, 1)
  server.behaviour = 'takes'
  world.clock.move(15_000)
  await expect.poll(() => server.mails.length).toBe(2)
  const ids = server.mails.map((mail) => /^Message-ID: (.+)$/im.exec(mail)?.[1])
  expect(ids[0]).toMatch(/^<[0-9a-f]{32}@example\.com>/)
  expect(ids[1]).toBe(ids[0])
  await expect.poll(() => world.dashboard.identity.outboxRows.waiting()).toBe(0)
  server.close()
})

test('a mail server that hangs is given up on after a minute, before another replica may take the mail', async () => {
  const server = await roughServer()
  server.behaviour = 'hangs'
  const clock = new MovedClock()
  const settings = { host: '127.0.0.1', port: server.port, security: 'none', username: undefined, password: undefined } as const
  const transport = smtpTransport(settings, SENDER, clock)
  const sending = transport.send({ to: MAYA, name: 'known-address', parameters: {} }, 'one')
  void server.asked.then(() => clock.move(60_000))
  await expect(sending).rejects.toThrow('the SMTP server took longer than 60 s')
  transport.close()
  server.close()
})

async function failed(world: DashboardWorld, times: number): Promise<void> {
  await expect.poll(() => world.lines.filter((line) => line.includes('it is tried again')).length).toBe(times)
}

interface RoughServer {
  behaviour: 'takes' | 'breaks-after-mail' | 'hangs'
  readonly port: number
  readonly mails: string[]
  /** Resolves at the first command. */
  readonly asked: Promise<void>
  close(): void
}

/** An SMTP server of a few lines, which may break off where a real one never would. */
async function roughServer(): Promise<RoughServer> {
  const asked = Promise.withResolvers<void>()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.write('220 rough\r\n')
    let mail: string | undefined
    socket.on('data', (bytes: Buffer) => {
      asked.resolve()
      const text = bytes.toString('utf8')
      if (mail === undefined) {
        if (rough.behaviour === 'hangs') return
        if (text.startsWith('DATA')) mail = ''
        socket.write(mail === '' ? '354 go on\r\n' : '250 fine\r\n')
        return
      }
      mail += text
      if (!mail.endsWith('\r\n.\r\n')) return
      rough.mails.push(mail)
      mail = undefined
      if (rough.behaviour === 'breaks-after-mail') socket.destroy()
      else socket.write('250 taken\r\n')
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  const { port } = server.address() as AddressInfo
  const rough: RoughServer = { behaviour: 'takes', port, mails: [], asked: asked.promise, close }
  return rough
}
