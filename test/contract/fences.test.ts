import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleOptions, type Program } from '../../build.ts'

const ROOT = join(import.meta.dirname, '../..')

/** [file, import path, whether the import is allowed]: for each fence, an allowed and a forbidden import. */
const IMPORTS: ReadonlyArray<readonly [string, string, boolean]> = [
  ['gateway/main.ts', './app.ts', true],
  ['gateway/main.ts', '#api/apikey.ts', false],
  ['gateway/main.ts', '../operator/app.ts', false],
  ['gateway/main.ts', '#kube/port.ts', false],
  ['gateway/main.ts', '#policy/model-access.ts', true],
  ['gateway/main.ts', 'express', false],
  ['gateway/app.ts', 'express', true],
  ['gateway/app.ts', './routes/models.ts', true],
  ['gateway/app.ts', './main.ts', false],
  ['gateway/errors.ts', './auth/caller.ts', false],
  ['gateway/http/health.ts', 'express', true],
  ['gateway/http/health.ts', '../errors.ts', true],
  ['gateway/http/health.ts', '../auth/caller.ts', false],
  ['gateway/routes/models.ts', '../auth/caller.ts', true],
  ['gateway/routes/models.ts', '../app.ts', false],
  ['gateway/routes/models.ts', 'undici', false],
  ['gateway/auth/caller.ts', '#contract/values/credential.ts', true],
  ['gateway/auth/caller.ts', '../upstream/dispatch.ts', false],
  ['gateway/auth/caller.ts', '../routes/models.ts', false],
  ['gateway/auth/caller.ts', 'express', false],
  ['gateway/auth/caller.ts', 'ioredis', false],
  ['gateway/auth/authenticate.ts', '../upstream/dispatch.ts', false],
  ['gateway/auth/caller.ts', '../projection/record-table.ts', true],
  ['gateway/projection/redis-projection.ts', 'ioredis', true],
  ['gateway/projection/redis-projection.ts', '../upstream/dispatch.ts', false],
  ['gateway/projection/redis-projection.ts', '../auth/caller.ts', false],
  ['gateway/projection/redis-projection.ts', '../http/health.ts', false],
  ['gateway/upstream/dispatch.ts', 'undici', true],
  ['gateway/upstream/dispatch.ts', '../auth/caller.ts', false],
  ['gateway/upstream/dispatch.ts', '../dialects/sse.ts', true],
  ['gateway/http/health.ts', '../dialects/sse.ts', true],
  ['gateway/dialects/messages.ts', '../errors.ts', true],
  ['gateway/dialects/messages.ts', '../http/health.ts', false],
  ['gateway/dialects/messages.ts', '../upstream/dispatch.ts', false],
  ['gateway/dialects/messages.ts', '../auth/caller.ts', false],
  ['gateway/dialects/messages.ts', '@kubernetes/client-node', false],
  ['gateway/metrics.ts', 'prom-client', true],
  ['gateway/app.ts', 'prom-client', false],
  ['lib/contract/records/key-record.ts', '../values/credential.ts', true],
  ['lib/contract/records/key-record.ts', '../../policy/model-access.ts', false],
  ['lib/contract/records/key-record.ts', '../../../gateway/errors.ts', false],
  ['lib/contract/records/key-record.ts', '#platform/clock.ts', false],
  ['lib/contract/records/key-record.ts', 'ioredis', false],
  ['lib/platform/redis-connection.ts', 'ioredis', true],
  ['lib/platform/clock.ts', 'ioredis', false],
  ['lib/platform/clock.ts', '#contract/records/format.ts', false],
  ['lib/platform/clock.ts', '../contract/records/format.ts', false],
  ['lib/policy/model-access.ts', '#contract/values/micros.ts', true],
  ['lib/policy/model-access.ts', '#api/apikey.ts', false],
  ['lib/policy/model-access.ts', '#platform/clock.ts', false],
  ['operator/main.ts', '#platform/settings.ts', true],
  ['operator/main.ts', '#contract/records/format.ts', true],
  ['operator/main.ts', '../gateway/errors.ts', false],
  ['operator/main.ts', '../test/support/lab.ts', false],
  ['operator/main.ts', '@kubernetes/client-node', false],
  ['api/apikey.ts', '#contract/values/credential.ts', true],
  ['api/apikey.ts', '#kube/port.ts', true],
  ['api/apikey.ts', '#kube/raw-client.ts', false],
  ['api/apikey.ts', '../operator/app.ts', false],
  ['lib/kube/transport.ts', '@kubernetes/client-node', true],
  ['lib/kube/transport.ts', 'undici', true],
  ['lib/kube/transport.ts', 'express', false],
  ['lib/kube/transport.ts', '#platform/clock.ts', true],
  ['lib/kube/resources.ts', '#api/apikey.ts', false],
  ['lib/kube/resources.ts', '#contract/records/format.ts', false],
  ['operator/kinds/apikey/steps.ts', '#api/apikey.ts', true],
  ['operator/kinds/apikey/steps.ts', '#kube/port.ts', true],
  ['operator/kinds/apikey/steps.ts', '#contract/values/credential.ts', true],
  ['operator/kinds/apikey/steps.ts', '#kube/raw-client.ts', false],
  ['operator/kinds/apikey/steps.ts', '../../projection/store.ts', false],
  ['operator/kinds/apikey/steps.ts', '../../loop/level.ts', true],
  ['operator/kinds/apikey/steps.ts', '../../loop/controller.ts', false],
  ['operator/kinds/apikey/steps.ts', './observe.ts', false],
  ['operator/kinds/apikey/steps.ts', 'node:fs', false],
  ['operator/kinds/apikey/observe.ts', '#kube/port.ts', true],
  ['operator/kinds/apikey/observe.ts', '#kube/raw-client.ts', false],
  ['operator/projection/redis-projection.ts', 'ioredis', true],
  ['standalone/main.ts', '../operator/kinds/apikey/kind.ts', true],
  ['cli/run.ts', '#api/validate.ts', true],
  ['cli/run.ts', '#contract/values/credential.ts', true],
  ['cli/run.ts', '../operator/kinds/apikey/hash-source.ts', false],
  ['cli/run.ts', '../gateway/auth/caller.ts', false],
  ['standalone/main.ts', '../gateway/app.ts', true],
  ['standalone/main.ts', '#kube/transport.ts', false],
  ['standalone/main.ts', '@kubernetes/client-node', false],
  ['test/integration/a.test.ts', '#kube/transport.ts', true],
  ['gateway/app.test.ts', '../test/support/builders.ts', true],
]

describe('import fences', () => {
  let verdicts: ReadonlyMap<string, boolean>

  beforeAll(() => {
    verdicts = lintImports()
  }, 60_000)

  it.each(IMPORTS)('%s importing %s: allowed is %s', (file, path, allowed) => {
    expect(verdicts.get(`${file} ${path}`)).toBe(allowed)
  })
})

describe('bundles', () => {
  it.each<[Program, string[]]>([
    ['gateway', ['node_modules/@kubernetes/', 'operator/', 'standalone/', 'test/']],
    ['operator', ['node_modules/express/', 'gateway/', 'standalone/', 'test/']],
    ['standalone', ['node_modules/@kubernetes/', 'test/']],
    ['headgate', ['node_modules/@kubernetes/', 'node_modules/undici/', 'node_modules/ioredis/', 'lib/platform/', 'standalone/', 'test/']],
  ])('the bundle of %s holds nothing of %s', async (program, foreign) => {
    const { metafile } = await build({ ...bundleOptions(program), write: false })
    const inputs = Object.keys(metafile.inputs)
    expect(inputs.length).toBeGreaterThan(10)
    expect(inputs.filter((input) => foreign.some((prefix) => input.startsWith(prefix)))).toEqual([])
  })

  it.each<Program>(['gateway', 'standalone'])(
    'the worker of %s holds the wire formats and the errors, and stays small',
    async (program) => {
      const { metafile } = await build({ ...bundleOptions(program), write: false })
      const worker = metafile.outputs['dist/body-worker.js']
      const foreign = Object.keys(worker?.inputs ?? {}).filter((input) => !/^gateway\/(dialects\/|errors\.ts)/.test(input))
      expect([foreign, worker !== undefined && worker.bytes < 100_000]).toEqual([[], true])
    },
  )
})

let folder = ''
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Lints a tree of the files above, one import a line, with the project's own configuration. @returns `file path` → whether the import is allowed */
function lintImports(): Map<string, boolean> {
  folder = mkdtempSync(join(tmpdir(), 'headgate-fences-'))
  copyFileSync(join(ROOT, 'oxlint.config.ts'), join(folder, 'oxlint.config.ts'))
  const pathsOf = Map.groupBy(IMPORTS, ([file]) => file)
  for (const [file, rows] of pathsOf) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), rows.map(([, path]) => `import '${path}'\n`).join(''))
  }
  const verdicts = new Map(IMPORTS.map(([file, path]) => [`${file} ${path}`, true]))
  for (const { code, filename, labels } of lint()) {
    const row = pathsOf.get(filename)?.[(labels[0]?.span.line ?? 0) - 1]
    if (code === 'eslint(no-restricted-imports)' && row) verdicts.set(`${row[0]} ${row[1]}`, false)
  }
  return verdicts
}

interface Finding {
  readonly code: string
  readonly filename: string
  readonly labels: ReadonlyArray<{ readonly span: { readonly line: number } }>
}

function lint(): Finding[] {
  const args = [join(ROOT, 'node_modules/oxlint/bin/oxlint'), '-f', 'json', ...new Set(IMPORTS.map(([file]) => file))]
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  if (!stdout.startsWith('{')) throw new Error(`oxlint did not answer with JSON: ${stdout}${stderr}`)
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: Finding[] } // oxlint's own format
  return diagnostics
}
