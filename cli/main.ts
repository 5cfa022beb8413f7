/** The program `headgate`: files, streams and the exit code. */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { run } from './run.ts'

process.exitCode = await run(process.argv.slice(2), {
  readFile: (path) => readFile(path, 'utf8'),
  readInput: () => text(process.stdin),
  async writeFile(path, content) {
    await writeFile(`${path}.new`, content)
    await rename(`${path}.new`, path)
  },
  print: (content) => void process.stdout.write(content),
  report: (content) => void process.stderr.write(content),
  now: () => Date.now(),
})
