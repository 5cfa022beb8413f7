/** The payments program as a real process, from its sources: how it refuses to start. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const MAIN = join(import.meta.dirname, '../../dashboard/payments/main.ts')
const RIGHT = {
  DASHBOARD_URL: 'https://dashboard.example.com',
  STRIPE_SECRET_KEY: 'sk_test_of_the_tests',
  STRIPE_WEBHOOK_SECRET: 'whsec_of_the_tests_0123456789',
  PAYMENTS_TOKEN: 'a token of the tests that is long enough',
}

async function linesOf(env: Readonly<Record<string, string>>): Promise<{ readonly code: unknown; readonly lines: readonly string[] }> {
  const child = spawn(process.execPath, [MAIN], { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (text += bytes.toString()))
  const [code] = (await once(child, 'close')) as unknown[]
  return { code, lines: text.trim().split('\n') }
}

test.each(['', '   ', 'whsec_', 'whsec_short', 'sk_test_of_the_tests'])(
  'with the signing secret %j the program does not start, since anybody could send events',
  async (secret) => {
    const { code, lines } = await linesOf({ ...RIGHT, STRIPE_WEBHOOK_SECRET: secret })
    expect([code, lines]).toEqual([1, [expect.stringMatching(/^headgate-payments: STRIPE_WEBHOOK_SECRET: .*whsec_/)]])
  },
)

test('without any secret the program does not start, and each missing one has a line', async () => {
  const { code, lines } = await linesOf({ DASHBOARD_URL: RIGHT.DASHBOARD_URL })
  expect(code).toBe(1)
  expect(lines.map((line) => /^headgate-payments: (\w+): /.exec(line)?.[1])).toEqual([
    'STRIPE_SECRET_KEY',
    'STRIPE_WEBHOOK_SECRET',
    'PAYMENTS_TOKEN',
  ])
})

test('wrong values end the program with one line each, and no line shows a secret', async () => {
  const { code, lines } = await linesOf({
    ...{ DASHBOARD_URL: 'dashboard', BILLING_CURRENCY: 'euro', INSTALLATION: 'a b', STRIPE_URL: 'x' },
    ...{ STRIPE_SECRET_KEY: 'hunter2', STRIPE_WEBHOOK_SECRET: 'whsec_hunter2', PAYMENTS_TOKEN: 'hunter2' },
  })
  expect(code).toBe(1)
  expect(lines.map((line) => /^headgate-payments: (\w+): /.exec(line)?.[1])).toEqual(
    expect.arrayContaining([
      ...['DASHBOARD_URL', 'BILLING_CURRENCY', 'INSTALLATION', 'STRIPE_URL'],
      ...['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET', 'PAYMENTS_TOKEN'],
    ]),
  )
  expect(lines.join('\n')).not.toContain('hunter2')
})
