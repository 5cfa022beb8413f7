/** `make ai-sdk`: the OpenAI provider of the Vercel AI SDK, directly and through a gateway. */
import { copyFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { runPrepared } from '../../support/prepared-namespace.ts'
import { runSdks } from '../sdk-run.ts'

/** @param modules the `node_modules` with the packages, which Node looks for beside the cases */
function argv(modules: string, folder: string): readonly [string, string] {
  const cases = join(folder, 'sdk-cases.mjs')
  copyFileSync(join(import.meta.dirname, 'sdk-cases.mjs'), cases)
  symlinkSync(modules, join(folder, 'node_modules'))
  return [process.execPath, cases]
}

if (import.meta.main) {
  const prepare = join(import.meta.dirname, 'prepare.sh')
  const run = (modules: string): Promise<number> => runSdks({ name: 'ai-sdk', hasMessages: false, argv: (folder) => argv(modules, folder) })
  process.exitCode = await runPrepared({ script: import.meta.filename, args: [], prepare, run })
}
