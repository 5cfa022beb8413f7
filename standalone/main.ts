/** `make run`: settings, logging and the end of the process. */
import manifest from '../package.json' with { type: 'json' }
import { processEnv } from '../gateway/process/env.ts'
import { runProgram } from '../gateway/process/lifecycle.ts'
import { createLog } from '../gateway/process/log.ts'
import { startStandalone } from './compose.ts'
import { loadConfig } from './config.ts'

await runProgram('headgate', async (use) => {
  const config = loadConfig(processEnv())
  const logging = createLog('standalone', config.logLevel)
  use(logging)
  return startStandalone({
    config,
    stateFolder: '.headgate',
    version: manifest.version,
    log: logging.log,
    print: (text) => void process.stdout.write(text),
  })
})
