/** How `make run` starts and ends in unusual environments, and the output of `make status` before, during and after a run. */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, type TestContext } from 'vitest'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const ROOT = join(import.meta.dirname, '../..')
const STATUS = join(ROOT, 'standalone/status.ts')
const READY = /first-key is ready:/
const NOBODY = 65_534

describe('make run', () => {
  let home = ''
  let cwd = ''
  const running: StandaloneProcess[] = []

  beforeEach(() => {
    home = temporaryFolder()
    cwd = join(home, 'a folder with spaces')
    mkdirSync(cwd)
    cpSync(join(ROOT, 'examples/standalone'), join(cwd, 'manifests'), { recursive: true })
  })
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop('SIGKILL')
    chmodSync(cwd, 0o755)
  })

  const start = (env: Record<string, string> = {}, user: { uid?: number; gid?: number } = {}): StandaloneProcess => {
    const program = new StandaloneProcess(cwd, env, user)
    running.push(program)
    return program
  }
  /** A user who is not root. Skips the test if the tests run as root and other users may not read the sources. */
  const otherUser = ({ skip }: Pick<TestContext, 'skip'>): { uid?: number; gid?: number } => {
    if (process.getuid?.() !== 0) return {}
    for (let folder = ROOT; folder !== dirname(folder); folder = dirname(folder))
      if ((statSync(folder).mode & 0o005) !== 0o005) skip(`other users may not read ${folder}`)
    for (const path of [home, cwd, join(cwd, 'manifests')]) chownSync(path, NOBODY, NOBODY)
    return { uid: NOBODY, gid: NOBODY }
  }
  const status = (env: Record<string, string> = {}): { code: number | null; out: string; err: string } => {
    const { status: code, stdout, stderr } = spawnSync(process.execPath, [STATUS], { cwd, env, encoding: 'utf8' })
    return { code, out: stdout, err: stderr }
  }
  const slowAnswer = async (program: StandaloneProcess, ms: number): Promise<number> => {
    const response = await fetch(`${await program.baseURL()}/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${program.credential('demo/first-key')}`,
        'content-type': 'application/json',
        'x-session-id': `stub:delay=${ms}`,
      },
      body: JSON.stringify({ model: 'llama', messages: [{ role: 'user', content: 'hello' }] }),
    })
    return response.status
  }
  const called = (program: StandaloneProcess): Promise<unknown> =>
    expect
      .poll(async () => (await fetch((await program.baseURL()).replace('/v1', '/metrics'))).text(), { interval: 20 })
      .toMatch(/headgate_\w*(in_flight|active)\w* 1/)

  it('ends on Ctrl-C with a goodbye that says what stays and how to start again', async () => {
    const program = start({ LOG_FORMAT: 'text', MANIFESTS: './manifests/' })
    await program.printed(READY)
    expect(await program.stop('SIGINT')).toBe(0)
    expect(program.output).toMatch(
      /\nStopping; .*Ctrl-C again ends at once\.\nHeadgate has stopped\. The keys keep their values in \.headgate\/secrets\. Start again with: PORT=0 MANIFESTS=\.\/manifests make run\n$/,
    )
  })

  it('writes JSON lines when the output is not a terminal, in the order of the events', async () => {
    const program = start()
    await program.printed(READY)
    expect(await program.stop('SIGTERM')).toBe(0)
    const lines = program.output.split('\n')
    const log = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as { time: string; msg: string })
    expect(log.map(({ time }) => time)).toEqual(log.map(({ time }) => time).toSorted())
    expect(log.at(-1)?.msg).toMatch(/^Headgate has stopped\. The keys keep their values/)
    const at = (pattern: RegExp): number => lines.findIndex((line) => pattern.test(line))
    const order = [
      /"ApiKey demo\/first-key: applied"/,
      /"ApiKey demo\/first-key: ready"/,
      /^Headgate is running/,
      /^ {2}curl/,
      /"stopping"/,
    ]
    expect(order.map(at)).toEqual(order.map(at).toSorted((a, b) => a - b))
    expect(order.map(at)).not.toContain(-1)
  })

  it('writes each condition and each recovery as fields of a JSON line, for programs', async () => {
    const file = join(cwd, 'manifests/apikey.yaml')
    const active = readFileSync(file, 'utf8')
    writeFileSync(file, active.replace('spec:\n', 'spec:\n  state: Suspended\n'))
    const program = start()
    await program.printed(/not ready \(Suspended\)/)
    writeFileSync(file, active)
    await program.printed(/ready now \(it was Suspended\)/)
    const lines = program.output.split('\n').filter((line) => line.includes('"name":"first-key"'))
    const object = { kind: 'ApiKey', namespace: 'demo', name: 'first-key' }
    const condition = {
      type: 'Ready',
      status: 'False',
      reason: 'Suspended',
      message: expect.stringContaining('Set it to Active') as unknown,
    }
    const recovery = { type: 'Ready', status: 'True', reason: 'Ready', ended: ['Suspended'] }
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { ...object, level: 'info', msg: 'ApiKey demo/first-key: applied', change: 'Applied' },
      { ...object, level: 'info', change: 'Condition', ...condition },
      { ...object, msg: 'ApiKey demo/first-key: applied', change: 'Applied' },
      { ...object, level: 'info', msg: 'ApiKey demo/first-key: ready now (it was Suspended)', change: 'Recovery', ...recovery },
    ])
  })

  it('lets a running answer end after one Ctrl-C, and ends at once after two', async () => {
    const first = start({ LOG_FORMAT: 'text' })
    await first.printed(READY)
    const answer = slowAnswer(first, 1_000)
    await called(first)
    first.signal('SIGINT')
    expect(await answer).toBe(200)
    expect(await first.exit()).toBe(0)
    const second = start({ LOG_FORMAT: 'text' })
    await second.printed(READY)
    const cut = slowAnswer(second, 15_000).catch(() => 'cut off')
    await called(second)
    second.signal('SIGINT')
    await second.printed(/Stopping;/)
    second.signal('SIGINT')
    expect(await second.exit()).toBe(1)
    expect(await cut).toBe('cut off')
  })

  it('starts again after kill -9 with the same keys', async () => {
    const first = start()
    await first.printed(READY)
    const credential = first.credential('demo/first-key')
    await first.stop('SIGKILL')
    expect(status().out).toMatch(/^`make run` is not running: the run of \d{4}-\S+ \S+ was killed\. /)
    const second = start()
    await second.printed(READY)
    expect(second.credential('demo/first-key')).toBe(credential)
    expect(await second.chat(credential, 'llama')).toBe(200)
  })

  it('lets make status show its keys and models while it runs and afterwards', async () => {
    expect(status()).toEqual({
      code: 1,
      out: '',
      err: 'headgate: .headgate: there is no state in this folder; start Headgate with `make run` first\n',
    })
    const program = start()
    await program.printed(READY)
    const shown = status({ MANIFESTS: 'other' })
    expect(shown).toMatchObject({ code: 0, err: '' })
    expect(shown.out).toMatch(/^`make run` \(process \d+\) is running at http:\/\/127\.0\.0\.1:\d+\/v1 with the manifests in manifests\.\n/)
    expect(shown.out).toContain('MANIFESTS is other now, but the last `make run` followed manifests;')
    expect(shown.out).toMatch(/^demo {3,}apikey\.headgate\.dev\/first-key {3,}True {3,}Ready {3,}sk-hg1\S+ {3,}\d+s$/m)
    expect(shown.out).toMatch(
      /^demo {3,}servedmodel\.headgate\.dev\/llama {3,}True {3,}Ready {3,}llama {3,}1\/1 {3,}0\.15\/0\.60 {3,}\d+s$/m,
    )
    expect(await program.stop()).toBe(0)
    const left = status({ MANIFESTS: 'manifests/' }).out
    expect(left).toMatch(/^`make run` is not running\. This is the state when it stopped, \d{4}-\S+ [\d:]+\.\n\nNAMESPACE[^]*first-key/)
  })

  it('shows in make status why a key does not work', async () => {
    const file = join(cwd, 'manifests/apikey.yaml')
    writeFileSync(file, readFileSync(file, 'utf8').replace('spec:\n', 'spec:\n  state: Suspended\n'))
    const program = start({ LOG_FORMAT: 'text' })
    await program.printed(/limited-key is ready:/)
    expect(status().out).toMatch(/first-key {3,}False {3,}Suspended/)
  })

  it('works for a user who is not root, in a folder with spaces, also at a low priority', async (context) => {
    const program = start({}, otherUser(context))
    setPriority(program.pid, 10) // as `nice make run`; threads that start later inherit the priority
    await program.printed(READY)
    expect(await program.chat(program.credential('demo/first-key'), 'llama')).toBe(200)
  })

  it('reads manifests that it may not write', async (context) => {
    const user = otherUser(context)
    chmodSync(join(cwd, 'manifests'), 0o555)
    await start({}, user).printed(READY)
    chmodSync(join(cwd, 'manifests'), 0o755)
  })

  it('ends with one line that names the folder where it may not write', async (context) => {
    const user = otherUser(context)
    chmodSync(cwd, 0o555)
    const program = start({}, user)
    expect(await program.exit()).toBe(1)
    expect(program.output).toMatch(/^headgate: \.headgate: cannot be used \(EACCES.*; make the folder writable for this user.*\n$/)
  })

  it('ends with one line that names PORT where this user may not listen', async (context) => {
    if (Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8')) <= 80)
      context.skip('every user may listen on port 80 here')
    const program = start({ PORT: '80' }, otherUser(context))
    expect(await program.exit()).toBe(1)
    expect(program.output).toBe('headgate: PORT: this user may not listen on port 80; set PORT to 1024 or above\n')
  })

  it('ends with one line for a folder that is in use, and leaves the running program alone', async () => {
    const first = start()
    await first.printed(READY)
    const second = start()
    expect(await second.exit()).toBe(1)
    expect(second.output).toMatch(/^headgate: \.headgate is in use by another Headgate \(process \d+\); stop that one.*\n$/)
    expect(await first.chat(first.credential('demo/first-key'), 'llama')).toBe(200)
  })

  it.each(['0.0.0.0', '::'])('listens on all addresses with HOST=%s, prints a URL that works, and warns', async (host) => {
    const program = start({ HOST: host, LOG_FORMAT: 'text' })
    await program.printed(READY)
    expect(program.output).toMatch(/WARN {2}HOST=\S+: every machine that reaches this one can call the gateway.*Set HOST to 127\.0\.0\.1/)
    expect(await program.baseURL()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/)
    expect(await program.chat(program.credential('demo/first-key'), 'llama')).toBe(200)
  })

  it('ends with one line for a HOST that this machine does not have', async () => {
    const program = start({ HOST: '192.0.2.1' })
    expect(await program.exit()).toBe(1)
    expect(program.output).toMatch(/^headgate: HOST: "192\.0\.2\.1" is not an address of this machine \(EADDRNOTAVAIL\); set HOST to .*\n$/)
  })

  it('never prints the password of MODEL_URL', async () => {
    const program = start({ MODEL_URL: 'http://user:hunter2@127.0.0.1:1' })
    expect(await program.exit()).toBe(1)
    expect(program.output).toMatch(/^headgate: MODEL_URL: the value contains @, and this URL must not hold .* a password; set it to .*\n$/)
    expect(program.output).not.toContain('hunter2')
  })
})
