import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples/accounts')
const [WEB, BATCH] = ['demo/acme-web', 'demo/acme-batch']

describe('make run with a plan, an account and two keys', () => {
  let cwd = ''
  const running: StandaloneProcess[] = []

  beforeEach(() => {
    cwd = temporaryFolder()
    cpSync(EXAMPLES, join(cwd, 'manifests'), { recursive: true })
  })
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop('SIGKILL')
  })

  const start = async (): Promise<StandaloneProcess> => {
    const program = new StandaloneProcess(cwd)
    running.push(program)
    for (const key of [WEB, BATCH]) await program.printed(new RegExp(`ApiKey ${key} is ready`))
    return program
  }
  const edit = (name: string, from: string | RegExp, to: string): void => {
    const path = join(cwd, 'manifests', name)
    const text = readFileSync(path, 'utf8')
    const next = text.replace(from, to)
    expect(next).not.toBe(text)
    writeFileSync(join(cwd, 'next'), next)
    renameSync(join(cwd, 'next'), path)
  }
  const answers = (program: StandaloneProcess, key: string, model = 'llama') =>
    expect.poll(() => program.chat(program.credential(key), model), { interval: 20 })

  it('enforces the plan for each key, and follows edits of plan and account', async () => {
    const program = await start()
    for (const key of [WEB, BATCH]) expect(await program.chat(program.credential(key), 'llama')).toBe(200)
    expect(await program.chat(program.credential(BATCH), 'gpt-4o')).toBe(403)
    edit('account.yaml', 'state: Active', 'state: Suspended')
    for (const key of [WEB, BATCH]) await answers(program, key).toBe(401)
    edit('account.yaml', 'state: Suspended', 'state: Active')
    for (const key of [WEB, BATCH]) await answers(program, key).toBe(200)
    edit('plan.yaml', "models: [llama, 'qwen-*']", "models: ['qwen-*']")
    for (const key of [WEB, BATCH]) await answers(program, key).toBe(403)
  })

  it('counts what the keys of an account use, also over a restart, and serves it on loopback', async () => {
    const program = await start()
    const usage = async (from: StandaloneProcess): Promise<readonly unknown[]> => {
      const [, url = ''] = await from.printed(/Usage of an account: curl (\S+\/accounts\/acme)/)
      const answer = (await (await fetch(`${url}?by=key`)).json()) as {
        readonly incomplete: readonly string[]
        readonly rows: readonly Record<string, unknown>[]
      }
      expect(answer.incomplete).toEqual([])
      return answer.rows.map(({ key, requests, refusedModel }) => [key, requests, refusedModel])
    }
    await program.chat(program.credential(WEB), 'llama')
    for (const model of ['llama', 'llama', 'gpt-4o']) await program.chat(program.credential(BATCH), model)
    const expected = [
      [WEB, 1, 0],
      [BATCH, 2, 1],
    ]
    await program.stop('SIGTERM') // nothing is durable yet
    const again = await start()
    expect(await usage(again)).toEqual(expect.arrayContaining(expected))
    await again.chat(again.credential(WEB), 'llama')
    await expect.poll(() => usage(again)).toContainEqual([WEB, 2, 0])
  })

  it('limits both keys together', async () => {
    edit('plan.yaml', 'requestsPerMinute: 180', 'requestsPerMinute: 4')
    const program = await start()
    const statuses: number[] = []
    for (let at = 0; at < 6; at += 1) statuses.push(await program.chat(program.credential(at % 2 === 0 ? WEB : BATCH), 'llama'))
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
  })

  it('answers 402 to a call that does not fit into the budget of the account, and refuses a new Account of a used name after a restart', async () => {
    edit('plan.yaml', "amount: '50000000'", "amount: '1'")
    const program = await start()
    expect(await program.chat(program.credential(WEB), 'llama')).toBe(402)
    await program.stop('SIGTERM')
    rmSync(join(cwd, 'manifests/account.yaml'))
    const again = new StandaloneProcess(cwd)
    running.push(again)
    await again.baseURL()
    await answers(again, WEB).toBe(401)
    cpSync(join(EXAMPLES, 'account.yaml'), join(cwd, 'manifests/account.yaml'))
    await again.printed(/Account acme: .*NameUsed|reopen-books/)
  })
})
