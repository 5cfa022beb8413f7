import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { RedisPart } from '../support/redis-part.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples/standalone')
const CURL = /^ {2}(curl http[^\n]* \\\n(?:[^\n]*\\\n)*[^\n]*)\n/m

describe('make run with real parts', () => {
  let cwd = ''
  let program: StandaloneProcess | undefined

  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'headgate-run-'))
    cpSync(EXAMPLES, join(cwd, 'manifests'), { recursive: true })
  })
  afterEach(async () => {
    await program?.stop('SIGKILL')
    rmSync(cwd, { recursive: true, force: true })
  })

  const pasteCurl = (line: string): unknown => JSON.parse(execFileSync('bash', ['-c', `${line} --silent`], { cwd, encoding: 'utf8' }))

  it('prints a curl line that answers when it is pasted, from the llama-server that MODEL_URL names', async () => {
    program = new StandaloneProcess(cwd, { MODEL_URL: inject('lab').modelServer.url })
    const [, line = ''] = await program.printed(CURL)
    expect(pasteCurl(line)).toMatchObject({ object: 'chat.completion', usage: { total_tokens: expect.any(Number) } })
  })

  it('keeps keys working over a wiped Redis and over a restart', async () => {
    const redis = await RedisPart.start(join(cwd, 'redis'), inject('lab').ip)
    try {
      const { REDIS_USERNAME, REDIS_PASSWORD } = redis.envFor('admin')
      const env = { REDIS_URL: redis.url.replace('//', `//${REDIS_USERNAME}:${REDIS_PASSWORD}@`) }
      program = new StandaloneProcess(cwd, env)
      const [, line = ''] = await program.printed(CURL)
      expect(pasteCurl(line)).toMatchObject({ object: 'chat.completion' })
      await redis.admin.flushall()
      await program.printed(/projection rebuilt because the store was emptied/)
      expect(pasteCurl(line)).toMatchObject({ object: 'chat.completion' })
      expect(await program.stop()).toBe(0)
      const credential = program.credential('demo/first-key')
      program = new StandaloneProcess(cwd, env)
      await program.printed(CURL)
      expect(program.credential('demo/first-key')).toBe(credential)
      expect(await program.chat(credential, 'llama')).toBe(200)
    } finally {
      await redis.stop()
    }
  })
})
