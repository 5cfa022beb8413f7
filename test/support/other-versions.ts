/**
 * Other versions of both programs, built for a test from replacements in `lib/contract/records`. The next version reads and writes one version
 * more, writes a field that no other version knows, and its texts of the new version need a feature. The version before accounts knows neither
 * their records nor their feature; the version before limits knows no feature at all.
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

const FIRST_FORMAT = 'export const FORMAT = { reads: [1], writes: 1, features: [] as readonly string[] }'
const FORMER_FORMAT = 'export const FORMAT = { reads: [1], writes: 1, features: [LIMITS_FEATURE] }'
const ACCOUNT_RECORDS = /^ {2}(plan|account): \{.*\n/gm

/** Texts to replace, by the name of the file in `lib/contract/records`. */
type Replacements = Readonly<Record<string, readonly (readonly [from: RegExp, to: string])[]>>

export async function buildNextVersion(folder: string): Promise<string> {
  const replacements = [
    [FORMAT, NEXT_FORMAT],
    [HEAD, NEXT_HEAD],
  ] as const
  return await buildVersion(folder, 'next-version', { 'format.ts': replacements })
}

/** `FORMER_BUNDLES` names a folder with the bundles of a real former commit instead. */
export async function buildVersionBeforeAccounts(folder: string): Promise<string> {
  const real = process.env['FORMER_BUNDLES']
  if (real !== undefined) return real
  return await buildVersion(folder, 'former-version', {
    'format.ts': [[FORMAT, FORMER_FORMAT]],
    'record-kinds.ts': [[ACCOUNT_RECORDS, '']],
  })
}

export async function buildVersionBeforeLimits(folder: string): Promise<string> {
  return await buildVersion(folder, 'first-version', { 'format.ts': [[FORMAT, FIRST_FORMAT]] })
}

/** A version whose records of models know fewer engines, and take no other. */
export async function buildVersionOfFewerEngines(folder: string): Promise<string> {
  const former = "engine: z.enum(['VLLM', 'SGLang', 'LlamaCpp', 'Ollama', 'TGI', 'Other'])"
  return await buildVersion(folder, 'fewer-engines', { 'model-record.ts': [[/engine: z\.string\(\)\.min\(1\)\.max\(32\)/, former]] })
}

async function buildVersion(folder: string, version: string, replacements: Replacements): Promise<string> {
  const bundles = join(folder, version, 'dist') // folders of that name are not searched for issued values
  await mkdir(bundles, { recursive: true })
  for (const program of ['gateway', 'operator'] as const) {
    const replaced = new Set<string>()
    const plugin = replacing(replacements, (file) => replaced.add(file))
    const { outputFiles } = await build({ ...bundleOptions(program), plugins: [plugin], sourcemap: false, write: false })
    const missing = Object.keys(replacements).filter((file) => !replaced.has(file))
    if (missing.length > 0) throw new Error(`the bundle of the ${program} holds no lib/contract/records/${missing.join(', ')}`)
    for (const { path, contents } of outputFiles) await writeFile(join(bundles, basename(path)), contents)
  }
  return bundles
}

function replacing(replacements: Replacements, onReplaced: (file: string) => void): Plugin {
  return {
    name: 'other-version',
    setup: (bundle) => {
      bundle.onLoad({ filter: /contract[\\/]records[\\/][^\\/]+\.ts$/ }, async ({ path }) => {
        const changes = replacements[basename(path)]
        if (changes === undefined) return undefined
        let contents = await readFile(path, 'utf8')
        for (const [from, to] of changes) {
          if (contents.search(from) < 0) throw new Error(`${path} has another form: adapt the other versions of the tests`)
          contents = contents.replace(from, to)
        }
        onReplaced(basename(path))
        return { contents, loader: 'ts' }
      })
    },
  }
}
