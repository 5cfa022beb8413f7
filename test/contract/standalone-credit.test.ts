import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples/accounts')
const KEY = 'demo/globex-web'

describe('make run with a prepaid account', () => {
  let cwd = ''
  const running: StandaloneProcess[] = []

  beforeEach(() => {
    cwd = temporaryFolder()
    cpSync(EXAMPLES, join(cwd, 'manifests'), { recursive: true })
    // the tests ask often
    write('plan.yaml', readFileSync(join(EXAMPLES, 'plan.yaml'), 'utf8').replaceAll(/(PerMinute): \d+/g, '$1: 1000000'))
  })
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop('SIGKILL')
  })

  const start = async (): Promise<StandaloneProcess> => {
    const program = new StandaloneProcess(cwd)
    running.push(program)
    await program.baseURL()
    return program
  }
  const write = (name: string, text: string): void => {
    writeFileSync(join(cwd, 'next'), text)
    renameSync(join(cwd, 'next'), join(cwd, 'manifests', name))
  }
  const edit = (name: string, from: string, to: string): void => {
    const text = readFileSync(join(EXAMPLES, name), 'utf8')
    expect(text).toContain(from)
    write(name, text.replace(from, to))
  }
  const credit = (name: string, amount: string): void =>
    write(
      `${name}.yaml`,
      `apiVersion: headgate.dev/v1alpha1\nkind: Credit\nmetadata: { name: ${name} }\nspec: { accountRef: { name: globex }, amount: '${amount}', type: TopUp }\n`,
    )
  const answers = (program: StandaloneProcess) => expect.poll(() => program.chat(program.credential(KEY), 'llama'), { interval: 20 })

  it('admits its key while the credit lasts, and again after the next one; a removed manifest takes nothing back', async () => {
    const program = await start()
    await program.printed(new RegExp(`ApiKey ${KEY} is ready`))
    expect(await program.chat(program.credential(KEY), 'llama')).toBe(200)
    edit('model.yaml', "outputPerMillion: '0.60'", "outputPerMillion: '20000'") // one call may cost more than there is
    await answers(program).toBe(402)
    credit('pay-1', '100')
    await answers(program).toBe(200)
    credit('refund-1', '-200')
    await answers(program).toBe(402)
    write('pay-1.yaml', '# empty\n')
    credit('pay-2', '300')
    await answers(program).toBe(200)
  })

  it('finds its balance again after a restart and after kill -9, and says what may be missing', async () => {
    const program = await start()
    await program.printed(new RegExp(`ApiKey ${KEY} is ready`))
    expect(await program.chat(program.credential(KEY), 'llama')).toBe(200)
    credit('refund-1', '-10')
    await answers(program).toBe(402)
    await program.stop('SIGTERM')
    const second = await start()
    await second.printed(/balances are resumed from \d\d:\d\d:\d\d\./i)
    await answers(second).toBe(402)
    await second.stop('SIGKILL')
    const third = await start()
    await third.printed(/balances are resumed from \d\d:\d\d:\d\d, up to 10 s lost\./i)
    await answers(third).toBe(402)
    credit('pay-1', '10')
    await answers(third).toBe(200)
  })
})
