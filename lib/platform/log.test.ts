import { expect, test } from 'vitest'
import { mintCredential } from '#contract/values/credential.ts'
import { createLog } from './log.ts'

function logged(): { lines: string[]; log: ReturnType<typeof createLog>['log'] } {
  const lines: string[] = []
  const { log } = createLog('gateway', 'info', { write: (line: string) => void lines.push(line) })
  return { lines, log }
}

test('a line is JSON with time, level, program and message', () => {
  const { lines, log } = logged()
  log.warn({ keyID: 'abc' }, 'hello')
  log.debug('not at this level')
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0]!)).toMatchObject({
    level: 'warn',
    program: 'gateway',
    keyID: 'abc',
    msg: 'hello',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
  })
})

test('a Credential does not reach the log from any field', () => {
  const { lines, log } = logged()
  const { credential } = mintCredential()
  log.info({ deep: { list: [credential] }, err: new Error(`refused ${credential}`) }, `key ${credential}`)
  log.error({ headers: { authorization: 'Bearer abc', 'x-api-key': 'def', cookie: 'ghi' }, password: 'jkl', token: 'mno' }, 'oops')
  expect(lines.join()).not.toContain(credential)
  expect(lines.join()).not.toMatch(/Bearer abc|def"|ghi|jkl|mno/)
  expect(lines[0]).toContain('sk-[hidden]')
})
