/** `make run` with a prepaid account, as a person uses it: the program and the command line in processes of their own, and a program that is killed. */
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { callHeaders, smallBody } from '../support/ask.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/wait-for.ts'

const ROOT = join(import.meta.dirname, '../..')
const KEY = 'demo/globex-web'
/** Price of one token, micro-units. */
const INPUT = 10_000
const OUTPUT = 20_000
/** Credits of globex: the gift of the examples, and a payment. */
const GIFT = 10_000_000
const PAID = 2_500_000

describe('make run with a prepaid account', () => {
  let cwd = ''
  let program: StandaloneProcess

  beforeEach(async () => {
    cwd = temporaryFolder()
    cpSync(join(ROOT, 'examples/accounts'), join(cwd, 'manifests'), { recursive: true })
    edit('plan.yaml', /(PerMinute): \d+/g, '$1: 1000000')
    edit('model.yaml', /inputPerMillion: .*/, "inputPerMillion: '10000'")
    edit('model.yaml', /outputPerMillion: .*/, "outputPerMillion: '20000'")
    await start()
  })
  afterEach(() => program.stop('SIGKILL'))

  const edit = (name: string, from: RegExp, to: string): void => {
    const path = join(cwd, 'manifests', name)
    const text = readFileSync(path, 'utf8')
    expect(text).toMatch(from)
    writeFileSync(path, text.replace(from, to))
  }
  const start = async (): Promise<void> => {
    program = new StandaloneProcess(cwd)
    await program.baseURL()
  }
  const headgate = async (...args: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> =>
    await promisify(execFile)(process.execPath, [join(ROOT, 'cli/main.ts'), ...args], { cwd })

  /** @returns status and cost, micro-units */
  const call = async (): Promise<readonly [status: number, micros: number]> => {
    const answer = await fetch(`${await program.baseURL()}/chat/completions`, {
      method: 'POST',
      headers: callHeaders(program.credential(KEY)),
      body: JSON.stringify(smallBody('llama', { max_tokens: 8 })),
    })
    const { usage } = (await answer.json()) as { readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } }
    return [answer.status, usage === undefined ? 0 : usage.prompt_tokens * INPUT + usage.completion_tokens * OUTPUT]
  }
  /** Calls until the balance is used up. @returns the cost of all calls, micro-units */
  const untilRefused = async (): Promise<number> => {
    for (let spent = 0; ;) {
      const [status, micros] = await call()
      if (status === 402) return spent
      expect(status).toBe(200)
      spent += micros
    }
  }
  /** Balance and spend in the ledger, micro-units. The amounts of its rows add up to the balance. */
  const ledger = async () => {
    const { stdout } = await headgate('ledger', 'globex', '--local', '--output', 'json')
    const { balance, spent, rows } = JSON.parse(stdout) as Readonly<Record<'balance' | 'spent', string>> & { readonly rows: Row[] }
    expect(rows.reduce((sum, { amount }) => sum + microsOf(amount), 0)).toBe(microsOf(balance))
    const credits = rows.filter(({ id }) => id !== '').map(({ id, amount }) => [id, microsOf(amount)])
    return { balance: microsOf(balance), spent: microsOf(spent), credits: Object.fromEntries(credits) as Record<string, number> }
  }
  const untilBalance = (micros: number): Promise<void> =>
    eventually(async () => expect((await ledger()).balance).toBe(micros), { everyMs: 500 })
  const ready = (): Promise<unknown> => program.printed(new RegExp(`ApiKey ${KEY} is ready`))
  const pay = (amount: string) => headgate('credit', 'add', 'globex', amount, '--id', 'pay-1', '--local')

  it('admits calls until the Credits are used up, and finds the same balance after kill -9; a payment counts once', async () => {
    await ready()
    await pay('2.50')
    await untilBalance(GIFT + PAID)
    const spent = await untilRefused()
    expect(spent).toBeGreaterThan(GIFT) // the payment is spent too
    expect(spent).toBeLessThanOrEqual(GIFT + PAID)
    await untilBalance(GIFT + PAID - spent)

    await program.stop('SIGKILL')
    await start()
    await program.printed(/balances are resumed from \d\d:\d\d:\d\d, up to 10 s lost\./i)
    expect((await call())[0]).toBe(402)
    expect((await pay('2.50')).stderr).toContain('counts once')
    await expect(pay('25.00')).rejects.toThrow('is another payment')
    await untilBalance(GIFT + PAID - spent)
    expect((await ledger()).credits).toEqual({ 'globex-welcome': GIFT, 'pay-1': PAID })
  })

  it('loses at most the spend of the last 10 s by kill -9, and never counts a call twice', async () => {
    await ready()
    const [, first] = await call()
    await untilBalance(GIFT - first)
    const last = (await Promise.all([call(), call(), call()])).reduce((sum, [, micros]) => sum + micros, 0)
    expect(last).toBeGreaterThan(0)
    await program.stop('SIGKILL')
    await start()
    await program.printed(/balances are resumed from \d\d:\d\d:\d\d, up to 10 s lost\./i)
    const { spent } = await ledger()
    expect(spent).toBeGreaterThanOrEqual(first)
    expect(spent).toBeLessThanOrEqual(first + last)
    const rest = await untilRefused()
    expect(spent + rest).toBeLessThanOrEqual(GIFT)
    await untilBalance(GIFT - spent - rest)
  })
})

interface Row {
  readonly id: string
  readonly amount: string
}

function microsOf(amount: string): number {
  return Math.round(Number(amount) * 1e6)
}
