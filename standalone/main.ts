/** `make run`: settings, logging and the end of the process. */
import { isatty } from 'node:tty'
import manifest from '../package.json' with { type: 'json' }
import { processEnv } from '#platform/settings.ts'
import { runProgram } from '#platform/lifecycle.ts'
import { startStandalone } from './compose.ts'
import { loadConfig } from './config.ts'
import { openOutput } from './output.ts'

const STDOUT = 1

await runProgram('headgate', async (use) => {
  const config = loadConfig(processEnv())
  const isText = config.logFormat === 'auto' ? isatty(STDOUT) : config.logFormat === 'text'
  const output = openOutput(isText, config.logLevel)
  use(output)
  return startStandalone({ config, version: manifest.version, log: output.log, print: output.print, isText })
})
