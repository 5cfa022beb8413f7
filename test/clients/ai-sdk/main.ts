/** `make ai-sdk`: the OpenAI provider of the Vercel AI SDK, directly and through a gateway. */
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runPrepared } from '../../support/prepared-namespace.ts'
import { runSdks } from '../sdk-run.ts'

/** @param modules the `node_modules` with the packages, which Node looks for beside the cases */
async function run(modules: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-ai-sdk-')) // not in .headgate, where `make run` refuses a link
  try {
    const cases = join(folder, 'sdk-cases.mjs')
    copyFileSync(join(import.meta.dirname, 'sdk-cases.mjs'), cases)
    symlinkSync(modules, join(folder, 'node_modules'))
    return await runSdks({ name: 'ai-sdk', hasMessages: false, argv: () => [process.execPath, cases] })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (import.meta.main) {
  const prepare = join(import.meta.dirname, 'prepare.sh')
  process.exitCode = await runPrepared({ script: import.meta.filename, args: [], prepare, run })
}
