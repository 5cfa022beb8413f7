/** The gateway as a real process, from its sources: how it starts, refuses to start, and ends. No test here has a Redis. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { checkedStreamsEnv } from '../support/checked-streams.ts'
import { packShard } from '../support/pack-shard.ts'
import { freePorts } from '../support/free-port.ts'
import { KeyringFolder } from '../support/keyring-folder.ts'
import { listening } from '../support/listening.ts'
import { issuedKey, keyringEntry, modelText } from '../support/records.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const MAIN = join(import.meta.dirname, '../../gateway/main.ts')
const NOBODY = 'redis://127.0.0.1:9'

const children: ChildProcess[] = []
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')))

interface Started {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  readonly output: () => string
  readonly errors: () => string
  readonly url: string
  readonly healthUrl: string
}

/** @param openFiles limit of open files; undefined: that of this process */
async function start(env: NodeJS.ProcessEnv, openFiles?: number): Promise<Started> {
  const [port = 0, metricsPort = 0] = await freePorts(2)
  const node = [process.execPath, MAIN]
  const [program = '', ...args] = openFiles === undefined ? node : ['sh', '-c', `ulimit -n ${openFiles} && exec "$@"`, 'sh', ...node]
  const child = spawn(program, args, {
    env: {
      ...checkedStreamsEnv(),
      PATH: process.env.PATH,
      REDIS_URL: NOBODY,
      PORT: String(port),
      METRICS_PORT: String(metricsPort),
      DEREGISTRATION_SECONDS: '0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let [output, errors] = ['', '']
  child.stdout?.on('data', (bytes: Buffer) => (output += bytes.toString()))
  child.stderr?.on('data', (bytes: Buffer) => (errors += bytes.toString()))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const at = (number: number): string => `http://127.0.0.1:${number}`
  return { child, ended, output: () => output, errors: () => errors, url: at(port), healthUrl: at(metricsPort) }
}

test('wrong settings end the program with one line per error', async () => {
  const { ended, errors } = await start({ PORT: 'x', REDIS_URL: '', LOG_LEVEL: 'loud' })
  expect(await ended).toBe(1)
  expect(errors().trim().split('\n')).toEqual([
    expect.stringMatching(/^gateway: PORT: /),
    expect.stringMatching(/^gateway: REDIS_URL: is not set; /),
    expect.stringMatching(/^gateway: LOG_LEVEL: /),
  ])
})

test.each(['PORT', 'METRICS_PORT'])('a taken %s ends the program with one line that names the remedy', async (name) => {
  const other = createServer()
  const port = await listening(other, '::')
  const { ended, errors } = await start({ [name]: String(port) })
  expect(await ended).toBe(1)
  expect(errors()).toBe(`gateway: ${name}: port ${port} is taken by another process; stop that process or set ${name} to a free port\n`)
  other.close()
})

test('a missing CA file ends the program with one line', async () => {
  const { ended, errors } = await start({ UPSTREAM_CA_FILE: '/nonexistent/ca.pem' })
  expect(await ended).toBe(1)
  expect(errors()).toMatch(/^gateway: UPSTREAM_CA_FILE: \/nonexistent\/ca.pem cannot be read; mount .*\n$/)
})

test.runIf(process.platform === 'linux')(
  'a limit of open files that is too low for calls ends the program, and a low one is logged',
  async () => {
    const { ended, errors } = await start({}, 900)
    expect(await ended).toBe(1)
    expect(errors()).toBe('gateway: the limit of open files is 900, too few for calls; raise it (ulimit -n) to 41000\n')
    const { output } = await start({}, 3_000)
    await waitFor('the line about open files', () => /"calls":1000,.*the limit of open files bounds the calls/.test(output()))
  },
)

test('without Redis it runs, is not ready, logs the reason, falsely refuses no key, and ends cleanly on SIGTERM', async () => {
  const { child, ended, output, errors, url, healthUrl } = await start({})
  await eventually(async () => expect((await fetch(`${healthUrl}/healthz`)).status).toBe(200))
  expect((await fetch(`${healthUrl}/readyz`)).status).toBe(503)
  await waitFor('the line about Redis', () => /Redis at 127.0.0.1:9 does not answer/.test(output()))
  const { credential } = issuedKey('a')
  const answer = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${credential}` } })
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  expect(errors()).toBe('')
  expect(output()).not.toContain(credential)
  expect(
    output()
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { msg: string }).msg),
  ).toEqual(expect.arrayContaining(['listening', 'shutting down', 'shut down']))
})

test('without Redis it serves from the mounted keyring after 5 s, and applies revocations from the files', async () => {
  const folder = new KeyringFolder()
  const { credential, record } = issuedKey('a')
  const publish = async (deletedMs: number | null): Promise<void> => {
    const place = { shards: 1, shard: 0 }
    const shard = await packShard(place, [writeKeyringEntry(keyringEntry(record, { deletedMs }))])
    folder.publish({ 'keyring/1-0': shard, 'models/1-0': await packShard(place, [modelText('llama')]) })
  }
  await publish(null)
  const { url, healthUrl, output } = await start({ KEYRING_DIR: folder.path })
  const status = async (): Promise<number> => (await fetch(`${url}/v1/models/llama`, { headers: { 'x-api-key': credential } })).status
  await eventually(async () => expect((await fetch(`${healthUrl}/readyz`)).status).toBe(200))
  expect(await status()).toBe(200)
  expect(await (await fetch(`${healthUrl}/metrics`)).text()).toMatch(/headgate_keys 1\n[^]*headgate_table_source\{source="Keyring"\} 1/)
  await publish(1)
  await eventually(async () => expect(await status()).toBe(401))
  expect(output()).not.toContain(credential)
  folder.remove()
})
