/** Bundles each program into one ES module below dist/, and its worker into another, for production and for the tests that start real processes. */
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { build, type BuildOptions } from 'esbuild'

/** The programs; each becomes `dist/<name>.js`. */
export const PROGRAMS = ['gateway', 'operator', 'standalone', 'headgate'] as const
export type Program = (typeof PROGRAMS)[number]

/** What the threads of a program run; its file stands beside that of the program. */
const WORKERS: Readonly<Record<Program, Readonly<Record<string, string>>>> = {
  gateway: { 'body-worker': 'gateway/dialects/body-worker.ts' },
  operator: {},
  standalone: { 'body-worker': 'gateway/dialects/body-worker.ts' },
  headgate: {},
}

/** Where a program stands that is not in a folder of its name. */
const FOLDERS: Readonly<Partial<Record<Program, string>>> = { headgate: 'cli' }

const ROOT = import.meta.dirname

/** CommonJS packages inside of an ES module still call `require` for Node's own modules. */
const REQUIRE_BANNER =
  "import { createRequire as createRequireOfBundle } from 'node:module'\nconst require = createRequireOfBundle(import.meta.url)"

/** How a program is bundled, its own file first; `write: false` and `metafile: true` let a test look at what would be in the file. */
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
    external: ['bufferutil', 'utf-8-validate'], // optional native add-ons of the WebSocket package: not installed, not used
  }
}

async function main(): Promise<void> {
  await mkdir(join(ROOT, 'dist'), { recursive: true })
  for (const program of PROGRAMS) {
    const { outputFiles } = await build({ ...bundleOptions(program), write: false })
    for (const { path, contents } of outputFiles) {
      await writeFile(`${path}.new`, contents)
      await rename(`${path}.new`, path) // a process that starts meanwhile reads the old file or the new one
    }
    for (const { path, contents } of outputFiles.filter((file) => file.path.endsWith('.js')))
      process.stdout.write(`build: ${relative(ROOT, path)} ${(contents.length / 1e6).toFixed(2)} MB\n`)
  }
}

if (import.meta.main) await main()
