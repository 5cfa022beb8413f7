/** The dashboard as a real process, from its sources: how it refuses to start. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const MAIN = join(import.meta.dirname, '../../dashboard/server/main.ts')

async function linesOf(env: Readonly<Record<string, string>>): Promise<{ readonly code: unknown; readonly lines: readonly string[] }> {
  const child = spawn(process.execPath, [MAIN], { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()))
  const [code] = (await once(child, 'close')) as unknown[]
  return { code, lines: errors.trim().split('\n') }
}

const RIGHT = {
  DASHBOARD_URL: 'https://dashboard.example.com',
  PUBLIC_URL: 'https://api.example.com',
  USAGE_URL: 'http://usage.example.com:9091',
  DASHBOARD_SECRET: 'a secret of the tests that is long enough to be taken',
  DATABASE_FILE: '/tmp/none/dashboard.db',
  SMTP_HOST: 'smtp.example.com',
  MAIL_FROM: 'Headgate <no-reply@example.com>',
}

test('wrong values end the program with one line each, and no line shows a secret', async () => {
  const { code, lines } = await linesOf({
    ...RIGHT,
    PORT: 'x',
    DASHBOARD_URL: 'https://example.com/dashboard',
    DASHBOARD_SECRET: 'too short a secret',
    DATABASE_URL: 'mysql://user:hunter2@host/db',
    TRUSTED_PROXIES: 'everybody',
    OIDC_PROVIDERS: '[{"id":"acme"}]',
    SMTP_SECURITY: 'perhaps',
  })
  expect(code).toBe(1)
  expect(lines.map((line) => /^headgate-dashboard: (\w+): /.exec(line)?.[1])).toEqual(
    expect.arrayContaining([
      'PORT',
      'DASHBOARD_URL',
      'DASHBOARD_SECRET',
      'DATABASE_URL',
      'TRUSTED_PROXIES',
      'OIDC_PROVIDERS',
      'SMTP_SECURITY',
    ]),
  )
  expect(lines.join('\n')).not.toMatch(/hunter2|too short a secret/)
})

test('settings that lack others end the program with one line each, and the remedy in each', async () => {
  const { DATABASE_FILE: _file, SMTP_HOST: _host, MAIL_FROM: _from, ...rest } = RIGHT
  const { code, lines } = await linesOf({ ...rest, LOCAL_PASSWORDS: 'false', GITHUB_CLIENT_ID: 'id' })
  expect([code, lines]).toEqual([
    1,
    [
      'headgate-dashboard: DATABASE_FILE: is not set; set it to a file on a volume, or set DATABASE_URL',
      'headgate-dashboard: SMTP_HOST: is not set, and nobody could verify an address; set it to the host name of an SMTP server',
      'headgate-dashboard: MAIL_FROM: is not set; set it to Name <address>',
      'headgate-dashboard: GITHUB_CLIENT_SECRET: is not set beside GITHUB_CLIENT_ID; set both or none',
      'headgate-dashboard: LOCAL_PASSWORDS: is false, and no provider is set; nobody could sign in. Set a provider',
    ],
  ])
})
