import { createServer, type RequestListener, type Server } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listening } from '../../../test/support/listening.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { UsageOfAccounts } from '../../../test/support/usage-of-accounts.ts'
import { OperatorUsage } from './operator-usage.ts'

const DAYS = { from: '2026-10-26', to: '2026-11-24' }
const AWAY = { code: 'unavailable', status: 503, message: 'Usage is not available now. Your keys go on working. Try again in a moment.' }

interface Asked {
  readonly operator: OperatorUsage
  readonly lines: string[]
}

function asking(url: string, more: { tokenFile?: string; timeoutMs?: number } = {}): Asked {
  const lines: string[] = []
  const outage = { failed: (line: string) => void lines.push(line), works: () => void lines.push('works') }
  return { operator: new OperatorUsage({ url, outage, ...more }), lines }
}

async function fake(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener)
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${await listening(server)}`
}

describe('the operator', () => {
  test('is asked with the token of the file, also after the kubelet has renewed it', async () => {
    using accounts = await UsageOfAccounts.start()
    accounts.credit('acme', 'pay-1', '10')
    const tokenFile = join(temporaryFolder(), 'token')
    const { operator, lines } = asking(accounts.url, { tokenFile })
    for (const token of ['first', 'second']) {
      writeFileSync(tokenFile, `${token}\n`)
      accounts.token = token
      expect((await operator.ledger('acme'))?.balance).toBe('10.00')
      expect((await operator.usage('acme', DAYS)).rows).toEqual([])
    }
    accounts.token = 'third'
    await expect(operator.ledger('acme')).rejects.toMatchObject(AWAY)
    expect(lines.at(-1)).toBe('the usage of accounts cannot be read: the operator answers 401: {"error":{"message":"another token"}}\n')
  })

  test('has no ledger for an account that was never accepted; a 404 of another program is a failure', async () => {
    using accounts = await UsageOfAccounts.start()
    const { operator } = asking(accounts.url)
    expect(await operator.ledger('acme')).toBeUndefined()
    const other = await fake((_request, response) => void response.writeHead(404).end('{"error":{"message":"no such page"}}'))
    await expect(asking(other).operator.ledger('acme')).rejects.toMatchObject(AWAY)
    await expect(asking(other).operator.usage('acme', DAYS)).rejects.toMatchObject(AWAY)
  })

  test('answers equal questions of one moment once', async () => {
    using accounts = await UsageOfAccounts.start()
    accounts.credit('acme', 'pay-1', '10')
    const { operator } = asking(accounts.url)
    await Promise.all(Array.from({ length: 20 }, () => operator.ledger('acme')))
    expect(accounts.asked).toHaveLength(1)
  })

  test('gets four questions about one account at a time, and the fifth is refused, while another account is answered', async () => {
    using accounts = await UsageOfAccounts.start()
    accounts.credit('other', 'pay-1', '10')
    const { operator } = asking(accounts.url)
    const many = await Promise.allSettled(
      ['01', '02', '03', '04', '05'].map((day) => operator.usage('acme', { ...DAYS, from: `2026-11-${day}` })),
    )
    expect(many.map(({ status }) => status)).toEqual([...Array<string>(4).fill('fulfilled'), 'rejected'])
    expect(many[4]).toMatchObject({ reason: { code: 'too-many-requests' } })
    expect((await operator.usage('acme', DAYS)).rows).toEqual([])
  })
})

describe('a fault is named, and never taken for an empty account:', () => {
  const LEDGER = { currency: 'EUR', asOf: '2026-11-24T12:00:00.000Z', balance: '1.00', incomplete: [], rows: [] }
  test.each<readonly [string, RequestListener, RegExp]>([
    [
      '503 of the operator',
      (_request, response) => void response.writeHead(503).end('{"error":{"message":"later"}}'),
      /answers 503: .*later/,
    ],
    ['an answer that is not JSON', (_request, response) => void response.end('<html>'), /not one of an operator of this version/],
    [
      'an amount that is not a decimal number',
      (_request, response) => void response.end(JSON.stringify({ ...LEDGER, balance: '1e3' })),
      /not one of an operator of this version/,
    ],
    ['a redirect', (_request, response) => void response.writeHead(302, { location: 'http://evil.example/' }).end(), /redirect/],
    [
      'an answer without end',
      (_request, response) => {
        const more = (): void => {
          while (response.writable && response.write(Buffer.alloc(1_048_576, 32))) continue
          response.once('drain', more)
        }
        more()
      },
      /more than 16777216 bytes/,
    ],
    ['a broken connection', (request) => void request.socket.destroy(), /fetch failed: /],
  ])('%s', async (_, listener, line) => {
    const { operator, lines } = asking(await fake(listener))
    await expect(operator.ledger('acme')).rejects.toMatchObject(AWAY)
    expect(lines).toEqual([expect.stringMatching(line)])
  })

  test('no answer in time', async () => {
    const { operator, lines } = asking(await fake(() => undefined), { timeoutMs: 20 })
    await expect(operator.ledger('acme')).rejects.toMatchObject(AWAY)
    expect(lines).toEqual([expect.stringContaining('timeout')])
  })

  test('no token', async () => {
    const { operator, lines } = asking('http://127.0.0.1:9', { tokenFile: '/nonexistent/token' })
    await expect(operator.ledger('acme')).rejects.toMatchObject(AWAY)
    expect(lines).toEqual([expect.stringContaining('ENOENT')])
  })
})
