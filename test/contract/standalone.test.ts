import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startStubModel } from '../../examples/stub-model/stub-model.ts'
import { CALL_ROUTES } from '#contract/values/call-routes.ts'
import { listening } from '../support/listening.ts'
import { fieldsOf, routeRequest } from '../support/route-calls.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples/standalone')
const KEY = 'demo/first-key'
const READY = /curl http\S+ \\\n\s+-H "Authorization: Bearer \$\(cat \.headgate\/secrets\/demo\/first-key\/SERVICE_API_KEY\)"/

describe('make run', () => {
  let cwd = ''
  const running: StandaloneProcess[] = []

  beforeEach(() => {
    cwd = temporaryFolder()
    cpSync(EXAMPLES, join(cwd, 'manifests'), { recursive: true })
  })
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop('SIGKILL')
  })

  const start = (env: Record<string, string> = {}): StandaloneProcess => {
    const program = new StandaloneProcess(cwd, env)
    running.push(program)
    return program
  }
  const startReady = async (env: Record<string, string> = {}): Promise<{ program: StandaloneProcess; credential: string }> => {
    const program = start(env)
    await program.printed(READY)
    return { program, credential: program.credential(KEY) }
  }
  const manifest = (name: string): string => join(cwd, 'manifests', name)
  const edit = (name: string, change: (text: string) => string): void => {
    writeFileSync(join(cwd, 'next'), change(readFileSync(manifest(name), 'utf8')))
    renameSync(join(cwd, 'next'), manifest(name))
  }
  const answers = (program: StandaloneProcess, credential: string, model = 'llama') =>
    expect.poll(() => program.chat(credential, model), { interval: 20 })

  it('turns the examples into a working key, and applies each edit of a manifest to the key', async () => {
    const { program, credential } = await startReady()
    expect(await program.chat(credential, 'llama')).toBe(200)
    expect(await program.chat(credential, 'other')).toBe(403)
    edit('apikey.yaml', (text) => text.replace('models: [llama]', 'models: [other]'))
    await answers(program, credential).toBe(403)
    edit('apikey.yaml', (text) => text.replace('  models: [other]', '  models: [llama]\n  state: Suspended'))
    await answers(program, credential).toBe(401)
    edit('apikey.yaml', (text) => text.replace('  state: Suspended', '  state: Active'))
    await answers(program, credential).toBe(200)
    rmSync(manifest('apikey.yaml'))
    await answers(program, credential).toBe(401)
    await expect.poll(() => existsSync(join(cwd, '.headgate/secrets', KEY))).toBe(false)
  })

  it('counts the limits of a key, and refuses the request after the last one until its minute is over', async () => {
    edit('apikey.yaml', (text) => text.replace('  models: [llama]', '  models: [llama]\n  limits: { requestsPerMinute: 2 }'))
    const { program, credential } = await startReady()
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push(await program.chat(credential, 'llama'))
    expect(statuses).toEqual([200, 200, 429])
    edit('apikey.yaml', (text) => text.replace('requestsPerMinute: 2', 'requestsPerMinute: 4'))
    await answers(program, credential).toBe(200)
  })

  it(
    'prints the limits of a key with a loop that reaches them, and goes on with its budgets after a restart',
    { timeout: 120_000 },
    async () => {
      edit('limited-key.yaml', (text) => text.replace('requestsPerMinute: 10', 'requestsPerMinute: 3'))
      const first = start()
      const [, loop = ''] = await first.printed(/^ {2}(for i in \$\(seq 4\); do curl .*limited-key.*; done; echo)$/m)
      const [, once = ''] = await first.printed(/first-key is ready:\n\n( {2}curl [^]*?)\n\n/)
      const answer = JSON.parse(run(`${once} -s`)) as { usage: { total_tokens: number } }
      expect(run(loop)).toBe('200 200 200 429')
      const used = 3 * answer.usage.total_tokens
      await spends(first, used)
      expect(await first.stop()).toBe(0)
      const second = start()
      await second.printed(/^Budgets are resumed from \d\d:\d\d:\d\d\.$/m)
      await second.printed(/limited-key is ready/)
      await spends(second, used)
      await second.stop('SIGKILL')
      const third = start()
      await third.printed(/^Budgets are resumed from \d\d:\d\d:\d\d, up to 10 s lost\.$/m)
      await third.printed(/limited-key is ready/)
      await spends(third, used)
    },
  )

  const run = (command: string): string => execFileSync('bash', ['-c', command], { cwd, encoding: 'utf8' }).trim()
  /**
   * Waits until the limited key has spent this many tokens of its budget, as `GET /v1/key` reports. Held tokens do not count: for 10 s the
   * gateway holds some for later calls.
   */
  const spends = async (program: StandaloneProcess, tokens: number): Promise<void> => {
    const headers = { authorization: `Bearer ${program.credential('demo/limited-key')}` }
    const url = `${await program.baseURL()}/key`
    const used = async (): Promise<number | undefined> => {
      const { budgets } = (await (await fetch(url, { headers })).json()) as { budgets: { used: number }[] }
      return budgets[0]?.used
    }
    await expect.poll(used, { interval: 100 }).toBe(tokens)
  }

  it('serves both SDK routes, models, health and metrics on one port', async () => {
    const { program, credential } = await startReady()
    const base = await program.baseURL()
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'llama', max_tokens: 5, stream: true, messages: [{ role: 'user', content: 'hello' }] })
    expect(await (await fetch(`${base}/messages`, { method: 'POST', headers, body })).text()).toContain('event: message_stop')
    expect(await (await fetch(`${base}/models`, { headers })).json()).toMatchObject({ data: [{ id: 'llama' }] })
    const root = base.replace(/\/v1$/, '')
    for (const path of ['/healthz', '/readyz', '/metrics']) expect((await fetch(root + path)).status).toBe(200)
  })

  it('serves every route of a model call to the first key', async () => {
    const { program, credential } = await startReady()
    const base = await program.baseURL()
    for (const route of CALL_ROUTES) {
      const { status } = await fetch(`${base}/${route}`, routeRequest(route, { model: 'llama', ...fieldsOf(route) }, credential))
      expect([route, status]).toEqual([route, 200])
    }
  })

  it('keeps the value of a key over a restart, and its own files to this user', async () => {
    const first = await startReady()
    expect(await first.program.stop()).toBe(0)
    const second = await startReady()
    expect(second.credential).toBe(first.credential)
    expect(await second.program.chat(first.credential, 'llama')).toBe(200)
    expect(statSync(join(cwd, '.headgate')).mode & 0o777).toBe(0o700)
    expect(statSync(join(cwd, '.headgate/secrets', KEY, 'SERVICE_API_KEY')).mode & 0o777).toBe(0o600)
  })

  it('revokes at the start the keys that were deleted while the program was stopped, also after a crash', async () => {
    const { program, credential } = await startReady()
    await program.stop('SIGKILL')
    rmSync(manifest('apikey.yaml'))
    const next = start()
    await next.printed(/ApiKey demo\/first-key: its manifest apikey\.yaml was deleted; the key is revoked/)
    await answers(next, credential).toBe(401)
    await expect.poll(() => readdirSync(join(cwd, '.headgate/secrets/demo'))).toEqual(['limited-key'])
  })

  it('keeps the last good version of an invalid manifest and names file, field and remedy', async () => {
    const { program, credential } = await startReady()
    edit('apikey.yaml', (text) => text.replace('models: [llama]', 'models: []'))
    await program.printed(/apikey\.yaml:\d+:\d+: ApiKey demo\/first-key: spec\.models: .+; .+ \(the last valid version stays in force\)/)
    expect(await program.chat(credential, 'llama')).toBe(200)
  })

  it('never prints or logs the value, and stores the value only in its Secret', async () => {
    const { program, credential } = await startReady({ ACCESS_LOG: 'all', LOG_LEVEL: 'debug' })
    expect(await program.chat(credential, 'llama')).toBe(200)
    expect(await program.chat(credential, 'other')).toBe(403)
    expect(await program.stop('SIGTERM')).toBe(0)
    expect(program.output).not.toContain(credential)
    const holders = readdirSync(join(cwd, '.headgate'), { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile() && readFileSync(join(file.parentPath, file.name)).includes(credential))
      .map((file) => join(file.parentPath, file.name).slice(cwd.length + 1))
    expect(new Set(holders.map((file) => file.split('/').slice(0, 4).join('/')))).toEqual(new Set(['.headgate/secrets/demo/first-key']))
  })

  it('calls the server of MODEL_URL instead of the stub, and sends it the token of authSecretRef', async () => {
    const seen: (string | undefined)[] = []
    const real = await startStubModel({ onRequest: ({ method, headers }) => method === 'POST' && seen.push(headers.authorization) })
    mkdirSync(join(cwd, 'manifests/secret'))
    writeFileSync(
      manifest('secret/token.yaml'),
      'apiVersion: v1\nkind: Secret\nmetadata: { name: upstream, namespace: demo, labels: { headgate.dev/upstream-auth: "true" } }\nstringData: { token: hush }\n',
    )
    edit('model.yaml', (text) => `${text.trimEnd()}\n      authSecretRef: { name: upstream }\n`)
    const { program, credential } = await startReady({ MODEL_URL: `${real.url}/v1` })
    await answers(program, credential).toBe(200)
    expect(seen.at(-1)).toBe('Bearer hush')
    await real.close()
  })

  it.each([
    ['a bad setting', { PORT: 'many' }, /^headgate: PORT: .*set it to a free port, such as 8080$/m],
    ['a folder that is not there', { MANIFESTS: 'nowhere' }, /^headgate: MANIFESTS: nowhere does not exist.*create the folder/m],
    ['a PRUNE_ALL that is neither true nor false', { PRUNE_ALL: 'yes' }, /^headgate: PRUNE_ALL: "yes" .*; set it to true or false$/m],
    [
      'a REDIS_URL that is none',
      { REDIS_URL: 'http://me:hush@x' },
      /^headgate: REDIS_URL: the value is not a redis:\/\/ or rediss:\/\/ URL; set it to redis:\/\/<host>:<port>, or unset it$/m,
    ],
    [
      'a Redis that is not there',
      { REDIS_URL: 'redis://127.0.0.1:1' },
      /^headgate: REDIS_URL: Redis at 127\.0\.0\.1:1 does not answer \(connection refused: nothing listens there\); check that it runs and that this process may reach it, or unset REDIS_URL$/m,
    ],
    ['a model server that is not there', { MODEL_URL: 'http://127.0.0.1:1' }, /^headgate: MODEL_URL: .*unset MODEL_URL$/m],
  ])('ends with one line that names the remedy: %s', async (_, env, line) => {
    const program = start(env)
    expect(await program.exit()).toBe(1)
    expect(program.output).toMatch(line)
    expect(program.output.trim().split('\n')).toHaveLength(1)
  })

  it('keeps a suspended key suspended while a slow program writes its manifest, of which the first half is valid', async () => {
    const { program, credential } = await startReady()
    const active = readFileSync(manifest('apikey.yaml'), 'utf8')
    const half = active.trimEnd()
    const rest = '\n  state: Suspended\n'
    edit('apikey.yaml', () => half + rest)
    await answers(program, credential).toBe(401)
    const shell = `printf '%s' "$HALF" > apikey.yaml; sleep 1.5; printf '%s' "$REST" >> apikey.yaml`
    const env = { HALF: half.replace('First key', 'Same key'), REST: rest, PATH: process.env['PATH'] }
    let isWritten = false
    const writing = promisify(execFile)('sh', ['-c', shell], { cwd: join(cwd, 'manifests'), env }).then(() => (isWritten = true))
    const seen = new Set<number>()
    while (!isWritten) seen.add(await program.chat(credential, 'llama'))
    await writing
    expect([...seen]).toEqual([401])
    await program.printed(/apikey\.yaml: does not end with a line break, as if a program were still writing the file; /)
    await program.printed(/apikey\.yaml: the file is in force again without problems/)
    expect(await program.chat(credential, 'llama')).toBe(401)
    edit('apikey.yaml', () => active)
    await answers(program, credential).toBe(200)
  })

  it('deletes nothing because of an empty file, a truncated file or an empty folder', async () => {
    const { program, credential } = await startReady()
    const text = readFileSync(manifest('apikey.yaml'), 'utf8')
    writeFileSync(manifest('apikey.yaml'), '')
    await program.printed(
      /apikey\.yaml: the file holds no manifest; ApiKey demo\/first-key stays in force; restore the manifest, or delete the file/,
    )
    writeFileSync(manifest('apikey.yaml'), text)
    await program.printed(/apikey\.yaml: the file is in force again without problems/)
    expect(await program.chat(credential, 'llama')).toBe(200)
    renameSync(join(cwd, 'manifests'), join(cwd, 'away'))
    mkdirSync(join(cwd, 'manifests'))
    await program.printed(/manifests: the folder holds no manifest; .*stay in force; restore the manifests, or set PRUNE_ALL=true/)
    expect(await program.chat(credential, 'llama')).toBe(200)
  })

  it('deletes nothing because MANIFESTS names another folder, until PRUNE_ALL says so', async () => {
    const { program, credential } = await startReady()
    await program.stop('SIGKILL')
    mkdirSync(join(cwd, 'other'))
    writeFileSync(join(cwd, 'other/key.yaml'), readFileSync(manifest('apikey.yaml'), 'utf8').replaceAll('first-key', 'other-key'))
    const other = start({ MANIFESTS: 'other' })
    await other.printed(/\/manifests: MANIFESTS named this folder before; .*ApiKey demo\/first-key.* stay in force; .*PRUNE_ALL=true/)
    await answers(other, credential).toBe(200)
    await other.stop()
    const pruned = start({ MANIFESTS: 'other', PRUNE_ALL: 'true' })
    await pruned.printed(/ApiKey demo\/first-key: its manifest apikey\.yaml was deleted; the key is revoked/)
    await answers(pruned, credential).toBe(401)
  })

  it('a pipe among the manifests delays neither the other files nor the end of the program', async () => {
    const { program, credential } = await startReady()
    execFileSync('mkfifo', [manifest('pipe.yaml')])
    await program.printed(/pipe\.yaml: is a named pipe and not a regular file; write the manifest to a regular file/)
    edit('apikey.yaml', (text) => text.replace('  models: [llama]', '  models: [llama]\n  state: Suspended'))
    await answers(program, credential).toBe(401)
    expect(await program.stop()).toBe(0)
  })

  it('starts although another program now has the process id of the killed run', async () => {
    const { program } = await startReady()
    await program.stop('SIGKILL')
    using database = new DatabaseSync(join(cwd, '.headgate/state.db'))
    database.prepare("UPDATE facts SET value = ? WHERE name = 'holder'").run(String(process.pid))
    await startReady()
  })

  it('ends with one line, and keeps every file, when a part of the state cannot be read', async () => {
    const { program, credential } = await startReady()
    await program.stop()
    const damaged = 'no database'.repeat(1_000)
    writeFileSync(join(cwd, '.headgate/state.db'), damaged)
    const next = start()
    expect(await next.exit()).toBe(1)
    expect(next.output).toMatch(
      /^headgate: \.headgate\/state\.db: cannot be used \(file is not a database\); .*restore it from a copy.*; nothing was changed or deleted\n$/,
    )
    expect(readFileSync(join(cwd, '.headgate/state.db'), 'utf8')).toBe(damaged)
    expect(next.credential(KEY)).toBe(credential)
  })

  it('ends with one line when REDIS_URL names a server that is not Redis, whatever the server answers', async () => {
    const web = createServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const port = await listening(web)
    const program = start({ REDIS_URL: `redis://me:hush@127.0.0.1:${port}` })
    expect(await program.exit()).toBe(1)
    expect(program.output).toBe(
      `headgate: REDIS_URL: the server at 127.0.0.1:${port} is not Redis; correct host and port in REDIS_URL, or unset REDIS_URL\n`,
    )
    web.close()
  })

  it('ends with one line when its port or its folder is taken', async () => {
    const holder = createServer()
    const first = start({ PORT: String(await listening(holder)) })
    expect(await first.exit()).toBe(1)
    expect(first.output).toMatch(/^headgate: PORT: port \d+ is taken .*free port\n$/)
    holder.close()
    await startReady()
    const second = start()
    expect(await second.exit()).toBe(1)
    expect(second.output).toMatch(
      /^headgate: \.headgate is in use by another Headgate \(process \d+\); stop that one, or start in another folder\n$/,
    )
  })
})
