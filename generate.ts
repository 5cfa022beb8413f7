/** `make generate`: writes the CRDs, their chart templates, the pages of fields and settings, and the description of the HTTP API. */
import { mkdir, writeFile } from 'node:fs/promises'
import { generatedFiles } from './generated-files.ts'

const root = new URL('./', import.meta.url)

for (const [path, text] of generatedFiles()) {
  const file = new URL(path, root)
  await mkdir(new URL('.', file), { recursive: true })
  await writeFile(file, text)
}
