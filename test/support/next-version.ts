/**
 * The next version of both programs, built for a test: it reads and writes one version more, writes a field that no other version knows, and
 * its texts of the new version need a feature. All of this is in a replacement of `lib/contract/records/format.ts`.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { bundleOptions } from '../../build.ts'

/** Version that only the next programs know. */
export const NEXT_VERSION = 2
const FEATURE = 'priority'

const FORMAT = /export const FORMAT\b[^=]*= \{[^}]*\}/
const NEXT_FORMAT = `export const FORMAT = { reads: [1, ${NEXT_VERSION}], writes: ${NEXT_VERSION}, features: [LIMITS_FEATURE, '${FEATURE}'] }`
const HEAD = /export function formatHead\([^)]*\)[^{]*\{/
const NEXT_HEAD = `export function formatHead(version: number, given: readonly string[] = []): FormatHead {
  const needs = version < ${NEXT_VERSION} ? given : [...new Set([...given, '${FEATURE}'])]
  const note = 'a field of the next version'
  return (needs.length > 0 ? { v: version, needs, note } : { v: version, note }) as FormatHead`

export async function buildNextVersion(folder: string): Promise<string> {
  const bundles = join(folder, 'next-version', 'dist') // folders of that name are not searched for issued values
  await mkdir(bundles, { recursive: true })
  for (const program of ['gateway', 'operator'] as const) {
    let isReplaced = false
    const plugin = replaceFormat(() => (isReplaced = true))
    const { outputFiles } = await build({ ...bundleOptions(program), plugins: [plugin], sourcemap: false, write: false })
    if (!isReplaced) throw new Error(`the bundle of the ${program} holds no lib/contract/records/format.ts`)
    for (const { path, contents } of outputFiles) await writeFile(join(bundles, basename(path)), contents)
  }
  return bundles
}

function replaceFormat(onReplaced: () => void): Plugin {
  return {
    name: 'next-version',
    setup: (bundle) => {
      bundle.onLoad({ filter: /contract[\\/]records[\\/]format\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8')
        if (!FORMAT.test(text) || !HEAD.test(text)) throw new Error(`${path} has another form: adapt the next version of the tests`)
        onReplaced()
        return { contents: text.replace(FORMAT, NEXT_FORMAT).replace(HEAD, NEXT_HEAD), loader: 'ts' }
      })
    },
  }
}
