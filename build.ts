/** Bundles each program into one ES module in dist/, and its worker into another. Production and the tests of real processes run the bundles. */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { build, type BuildOptions } from 'esbuild'

/** The programs; each becomes `dist/<name>.js`. */
export const PROGRAMS = ['gateway', 'operator', 'dashboard', 'payments', 'standalone', 'headgate'] as const
export type Program = (typeof PROGRAMS)[number]

/** The worker threads of each program: bundle name → source. The bundle lies beside that of the program. */
const WORKERS: Readonly<Record<Program, Readonly<Record<string, string>>>> = {
  gateway: { 'body-worker': 'gateway/dialects/body-worker.ts' },
  operator: {},
  dashboard: {},
  payments: {},
  standalone: { 'body-worker': 'gateway/dialects/body-worker.ts' },
  headgate: {},
}

/** The programs in each image. */
const IMAGES: Readonly<Record<string, readonly Program[]>> = {
  gateway: ['gateway'],
  operator: ['operator'],
  dashboard: ['dashboard', 'payments'],
}

/** The folders of programs that are not in a folder of their own name. */
const FOLDERS: Readonly<Partial<Record<Program, string>>> = {
  headgate: 'cli',
  dashboard: 'dashboard/server',
  payments: 'dashboard/payments',
}

const ROOT = import.meta.dirname

/** CommonJS packages inside an ES module still call `require` for Node's own modules. */
const REQUIRE_BANNER =
  "import { createRequire as createRequireOfBundle } from 'node:module'\nconst require = createRequireOfBundle(import.meta.url)"

/** The options that bundle a program, its own file first. With `write: false` and `metafile: true`, a test can read the contents without writing a file. */
export function bundleOptions(program: Program): BuildOptions & { metafile: true } {
  return {
    absWorkingDir: ROOT,
    entryPoints: { [program]: `${FOLDERS[program] ?? program}/main.ts`, ...WORKERS[program] },
    outdir: 'dist',
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    sourcemap: 'linked',
    metafile: true,
    logLevel: 'warning',
    banner: { js: REQUIRE_BANNER },
    define: { LUA_FILES: JSON.stringify(luaFiles()) },
    external: ['bufferutil', 'utf-8-validate'], // optional native add-ons of the WebSocket package: not installed, not used
  }
}

/** All Lua files by their path below lib/contract/, for `lib/contract/redis/function-library.ts`. */
function luaFiles(): Record<string, string> {
  const folder = join(ROOT, 'lib/contract')
  return Object.fromEntries(globSync('*/*.lua', { cwd: folder }).map((path) => [path, readFileSync(join(folder, path), 'utf8')]))
}

const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+\//
const NOTICE_FILE = /^(licen[cs]e|copying|notice)/i

/** The licences of the packages in a bundle, with their copyright notices: most licences want them beside each copy. @param inputs paths of a metafile */
export function noticesOf(inputs: Iterable<string>): string {
  const packages = [...new Set(Array.from(inputs, (path) => PACKAGE.exec(path)?.[0]))].filter((path) => path !== undefined).toSorted()
  return packages.map(noticeOf).join('\n')
}

/** The fields of a package.json that its notice shows. */
interface PackageManifest {
  readonly name: string
  readonly version: string
  readonly license?: string
  readonly author?: unknown
}

function noticeOf(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as PackageManifest
  const files = readdirSync(join(ROOT, folder)).filter((file) => NOTICE_FILE.test(file))
  const texts = files.map((file) => readFileSync(join(ROOT, folder, file), 'utf8').trim())
  if (texts.length === 0) texts.push(`By ${JSON.stringify(manifest.author ?? 'its authors')}.`)
  const heading = `${manifest.name} ${manifest.version} (${manifest.license ?? 'unknown'})`
  return `${'='.repeat(80)}\n${heading}\n\n${texts.join('\n\n')}\n`
}

/** The packages in the pages of the dashboard, which Vite bundles. */
async function pageInputs(): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['dashboard/web/main.tsx'],
    bundle: true,
    write: false,
    outdir: 'dist',
    metafile: true,
    logLevel: 'silent',
  })
  return Object.keys(metafile.inputs)
}

async function main(): Promise<void> {
  await mkdir(join(ROOT, 'dist'), { recursive: true })
  const inputs = new Map<Program, readonly string[]>()
  for (const program of PROGRAMS) {
    const { outputFiles, metafile } = await build({ ...bundleOptions(program), write: false })
    inputs.set(program, Object.keys(metafile.inputs))
    for (const { path, contents } of outputFiles) {
      await writeFile(`${path}.new`, contents)
      await rename(`${path}.new`, path) // a process that starts now reads the old file or the new one, never half of one
    }
    for (const { path, contents } of outputFiles.filter((file) => file.path.endsWith('.js')))
      process.stdout.write(`build: ${relative(ROOT, path)} ${(contents.length / 1e6).toFixed(2)} MB\n`)
  }
  for (const [image, programs] of Object.entries(IMAGES)) {
    const own = programs.flatMap((program) => inputs.get(program) ?? [])
    const path = join(ROOT, 'dist', `${image}.notices.txt`)
    await writeFile(path, noticesOf(image === 'dashboard' ? [...own, ...(await pageInputs())] : own))
  }
}

if (import.meta.main) await main()
