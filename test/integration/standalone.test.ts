import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { checkedStreamsEnv } from '../support/checked-streams.ts'
import { RedisPart } from '../support/redis-part.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples/standalone')
const CURL = /^ {2}(curl http[^\n]* \\\n(?:[^\n]*\\\n)*[^\n]*)\n/m

describe('make run with real parts', () => {
  let cwd = ''
  let program: StandaloneProcess | undefined

  beforeEach(() => {
    cwd = temporaryFolder()
    cpSync(EXAMPLES, join(cwd, 'manifests'), { recursive: true })
  })
  afterEach(async () => {
    await program?.stop('SIGKILL')
  })

  const pasteCurl = (line: string): unknown => JSON.parse(execFileSync('bash', ['-c', `${line} --silent`], { cwd, encoding: 'utf8' }))

  it('prints a curl line that, when pasted, gets an answer from the llama-server that MODEL_URL names', async () => {
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

  describe('with a Redis', () => {
    let redis: RedisPart
    let env: { REDIS_URL: string }
    const others: StandaloneProcess[] = []

    beforeEach(async () => {
      redis = await RedisPart.start(join(cwd, 'redis'), inject('lab').ip)
      const { REDIS_USERNAME, REDIS_PASSWORD } = redis.envFor('admin')
      env = { REDIS_URL: redis.url.replace('//', `//${REDIS_USERNAME}:${REDIS_PASSWORD}@`) }
      program = new StandaloneProcess(cwd, env)
      await program.printed(CURL)
    })
    afterEach(async () => {
      for (const other of others.splice(0)) await other.stop('SIGKILL')
      await redis.stop()
    })

    /** Starts a program in a second folder. With `copiesState` the folder has the state of the first one, and so the same installation. */
    const startOther = (more: Record<string, string> = {}, copiesState = false): StandaloneProcess => {
      const folder = temporaryFolder()
      cpSync(EXAMPLES, join(folder, 'manifests'), { recursive: true })
      if (copiesState) cpSync(join(cwd, '.headgate'), join(folder, '.headgate'), { recursive: true, filter: (file) => !/lock/.test(file) })
      const other = new StandaloneProcess(folder, { ...env, ...more })
      others.push(other)
      return other
    }
    const works = async (): Promise<number | undefined> => program?.chat(program.credential('demo/first-key'), 'llama')

    it('refuses the Redis of another installation with the remedy, and the keys of that installation keep working', async () => {
      const other = startOther()
      expect(await other.exit()).toBe(1)
      expect(other.output).toMatch(
        /^headgate: REDIS_URL: this Redis holds the keys of another installation \([0-9a-f-]{36}\), .*another database \(redis:\/\/…\/1\) or another REDIS_KEY_PREFIX; set REDIS_TAKE_OVER=true once to replace those keys\n$/,
      )
      expect(await works()).toBe(200)
    })

    it.each([
      ['another database', () => ({ REDIS_URL: `${env.REDIS_URL}/1` })],
      ['another prefix', () => ({ REDIS_KEY_PREFIX: 'mine' })],
    ])('two installations share a Redis with %s', async (_, more) => {
      const other = startOther(more())
      await other.printed(CURL)
      expect(await other.chat(other.credential('demo/first-key'), 'llama')).toBe(200)
      expect(await works()).toBe(200)
    })

    it('REDIS_TAKE_OVER replaces the keys, and the program that used the Redis before ends with the reason', async () => {
      const other = startOther({ REDIS_TAKE_OVER: 'true' })
      await other.printed(CURL)
      expect(await program?.exit()).toBe(1)
      expect(program?.output).toMatch(/^headgate: REDIS_URL: this Redis holds the projection of another installation \(.*/m)
      expect(await other.chat(other.credential('demo/first-key'), 'llama')).toBe(200)
    })

    it('refuses to start from a copy of the state while the original runs, and starts after a crash', async () => {
      const copy = startOther({}, true)
      expect(await copy.exit()).toBe(1)
      expect(copy.output).toMatch(
        /^headgate: REDIS_URL: another Headgate with a copy of this state folder uses this Redis \(process standalone\/\S+\); stop that Headgate, or use .*\n$/,
      )
      expect(await works()).toBe(200)
      await program?.stop('SIGKILL')
      const next = startOther({}, true)
      await next.printed(CURL)
      expect(await next.chat(next.credential('demo/first-key'), 'llama')).toBe(200)
    })

    it('reports a wrong password and a lost Redis in words of its own, and never prints the password', async () => {
      const other = startOther({ REDIS_URL: redis.url.replace('//', '//admin:hush-hush@') })
      expect(await other.exit()).toBe(1)
      expect(other.output).toMatch(
        /^headgate: REDIS_URL: Redis at \S+ refuses the credentials of user "admin"; correct the user and the password in REDIS_URL, or unset REDIS_URL\n$/,
      )
      await redis.process.stop()
      const lost =
        /Redis at \S+ does not answer \((connection refused: nothing listens there|the connection was lost|no answer in time)\); check that it runs/
      await program?.printed(lost)
      await redis.start()
      await program?.printed(/(Redis|projection): works again after/)
      expect(program?.output).not.toMatch(/max retries|maxRetriesPerRequest|ECONN|Connection is closed|hush/)
    })
  })

  it('says during an outage of Redis that an edit is not in force yet, and afterwards that it is', async () => {
    const redis = await RedisPart.start(join(cwd, 'redis'), inject('lab').ip)
    try {
      const { REDIS_USERNAME, REDIS_PASSWORD } = redis.envFor('admin')
      const env = { LOG_FORMAT: 'text', REDIS_URL: redis.url.replace('//', `//${REDIS_USERNAME}:${REDIS_PASSWORD}@`) }
      program = new StandaloneProcess(cwd, env)
      await program.printed(/first-key is ready:/)
      const credential = program.credential('demo/first-key')
      await redis.stop()
      const file = join(cwd, 'manifests/apikey.yaml')
      writeFileSync(file, readFileSync(file, 'utf8').replace('spec:\n', 'spec:\n  state: Suspended\n'))
      await program.printed(
        /ApiKey demo\/first-key: Programmed is Unknown \(StoreUnreachable\): .*until then the last edit is not in force/,
      )
      expect(await program.chat(credential, 'llama')).toBe(200)
      await redis.start()
      await program.printed(/ApiKey demo\/first-key: no longer StoreUnreachable/)
      expect(await program.chat(credential, 'llama')).toBe(401)
      expect(program.output).not.toContain(REDIS_PASSWORD)
    } finally {
      await redis.stop()
    }
  })

  it('on a terminal writes lines for people, the command last, and a goodbye on Ctrl-C', async () => {
    const main = join(import.meta.dirname, '../../standalone/main.ts')
    const env = { ...checkedStreamsEnv(), PATH: process.env['PATH'], PORT: '0', MANIFESTS: 'manifests', TERM: 'dumb' }
    const terminal = spawn('python3', ['-c', 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)', process.execPath, main], {
      cwd,
      env,
    })
    let screen = ''
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text.replaceAll('\r', '')))
    await expect.poll(() => screen).toMatch(/limited-key is ready:[^]*done; echo\n\n$/)
    expect(screen).not.toMatch(/^\{/m)
    const credential = readFileSync(join(cwd, '.headgate/secrets/demo/first-key/SERVICE_API_KEY'), 'utf8')
    expect(screen).not.toContain(credential)
    const [, line = ''] = CURL.exec(screen) ?? []
    expect(pasteCurl(line)).toMatchObject({ object: 'chat.completion' })
    await expect.poll(() => screen).toMatch(/\d\d:\d\d:\d\d {2}200 {2}POST \/v1\/chat\/completions {2}demo\/first-key/)
    const ended = once(terminal, 'close')
    terminal.stdin.write('\x03') // the terminal turns this byte into a SIGINT
    expect(await ended).toEqual([0, null])
    expect(screen).toMatch(
      /Stopping;[^]*Headgate has stopped\. The keys keep their values in \.headgate\/secrets\. Start again with: PORT=0 MANIFESTS=manifests make run\n$/,
    )
  })
})
