/** `make python-sdks`: the Python SDKs of OpenAI and Anthropic, LangChain and LlamaIndex, directly and through a gateway. */
import { join } from 'node:path'
import { runPrepared } from '../../support/prepared-namespace.ts'
import { runSdks } from '../sdk-run.ts'

if (import.meta.main) {
  const prepare = join(import.meta.dirname, 'prepare.sh')
  const run = (python: string): Promise<number> =>
    runSdks({ name: 'python-sdks', hasMessages: true, argv: () => [python, join(import.meta.dirname, 'sdk_cases.py')] })
  process.exitCode = await runPrepared({ script: import.meta.filename, args: [], prepare, run })
}
