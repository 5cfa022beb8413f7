import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { beforeAll, describe, expect, it } from 'vitest'
import { bundleOptions, type Program } from '../../build.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const ROOT = join(import.meta.dirname, '../..')
const folder = temporaryFolderOfFile()

/** For each fence, imports that a file may have and imports that it may not have, separated by spaces; `type:` marks an import of a type, `name:` of a value. */
const FENCES: Readonly<Record<string, { readonly may?: string; readonly mayNot?: string }>> = {
  'gateway/main.ts': { may: './app.ts #policy/model-access.ts', mayNot: '#api/apikey.ts ../operator/app.ts #kube/port.ts express' },
  'gateway/app.ts': { may: 'express ./routes/models.ts', mayNot: './main.ts prom-client' },
  'gateway/errors.ts': { mayNot: './auth/caller.ts' },
  'gateway/http/health.ts': { may: 'express ../errors.ts ../dialects/sse.ts', mayNot: '../auth/caller.ts' },
  'gateway/routes/models.ts': { may: '../auth/caller.ts', mayNot: '../app.ts undici' },
  'gateway/auth/caller.ts': {
    may: '#contract/values/credential.ts ../projection/record-table.ts',
    mayNot: '../upstream/dispatch.ts ../routes/models.ts express ioredis',
  },
  'gateway/auth/authenticate.ts': { mayNot: '../upstream/dispatch.ts' },
  'gateway/projection/redis-projection.ts': { may: 'ioredis', mayNot: '../upstream/dispatch.ts ../auth/caller.ts ../http/health.ts' },
  'gateway/upstream/dispatch.ts': { may: 'undici ../dialects/sse.ts', mayNot: '../auth/caller.ts' },
  'gateway/dialects/messages.ts': {
    may: '../errors.ts',
    mayNot: '../http/health.ts ../upstream/dispatch.ts ../auth/caller.ts @kubernetes/client-node',
  },
  'gateway/metrics.ts': { may: 'prom-client' },
  'lib/contract/records/key-record.ts': {
    may: '../values/credential.ts',
    mayNot: '../../policy/model-access.ts ../../../gateway/errors.ts #platform/clock.ts ioredis',
  },
  'lib/platform/redis-connection.ts': { may: 'ioredis' },
  'lib/platform/clock.ts': { mayNot: 'ioredis #contract/records/format.ts ../contract/records/format.ts' },
  'lib/policy/model-access.ts': { may: '#contract/values/micros.ts', mayNot: '#api/apikey.ts #platform/clock.ts' },
  'operator/main.ts': {
    may: '#platform/settings.ts #contract/records/format.ts',
    mayNot: '../gateway/errors.ts ../test/support/lab.ts @kubernetes/client-node',
  },
  'api/apikey.ts': { may: '#contract/values/credential.ts #kube/port.ts', mayNot: '#kube/raw-client.ts ../operator/app.ts' },
  'lib/kube/transport.ts': { may: '@kubernetes/client-node undici #platform/clock.ts', mayNot: 'express' },
  'lib/kube/resources.ts': { mayNot: '#api/apikey.ts #contract/records/format.ts' },
  'operator/kinds/apikey/steps.ts': {
    may: '#api/apikey.ts #kube/port.ts #contract/values/credential.ts ../../loop/level.ts',
    mayNot: '#kube/raw-client.ts ../../projection/store.ts ../../loop/controller.ts ./observe.ts node:fs',
  },
  'operator/kinds/apikey/observe.ts': { may: '#kube/port.ts', mayNot: '#kube/raw-client.ts' },
  'operator/projection/redis-projection.ts': { may: 'ioredis' },
  'standalone/main.ts': { may: '../operator/kinds/apikey/kind.ts ../gateway/app.ts', mayNot: '#kube/transport.ts @kubernetes/client-node' },
  'cli/run.ts': {
    may: '#api/validate.ts #contract/values/credential.ts',
    mayNot: '../operator/kinds/apikey/hash-source.ts ../gateway/auth/caller.ts',
  },
  'dashboard/web/api.ts': {
    may: 'type:../server/page-data/people.ts ./sign-in-path.ts',
    mayNot:
      'name:../server/page-data/people.ts ../server/app.ts type:../../gateway/errors.ts ../../gateway/errors.ts #contract/values/micros.ts express node:fs',
  },
  'dashboard/web/settings/settings.tsx': {
    may: 'react @tanstack/react-query type:../../server/page-data/people.ts ../queries.ts ./section.module.css',
    mayNot: 'name:../../server/page-data/people.ts ../../server/identity/sessions.ts #api/account.ts undici',
  },
  'gateway/http/server.ts': { mayNot: '../../dashboard/server/page-data/people.ts' },
  'dashboard/server/app.ts': { may: 'express helmet ./routes.ts #api/account.ts', mayNot: 'better-auth kysely pg ../../operator/app.ts' },
  'dashboard/server/routes/person.ts': { may: '../identity/person.ts', mayNot: 'express better-auth kysely nodemailer ../../web/api.ts' },
  'dashboard/server/identity/auth.ts': { may: 'better-auth better-auth/api kysely pg', mayNot: 'express @kubernetes/client-node' },
  'dashboard/payments/stripe-provider.ts': {
    may: 'stripe ./payment.ts #api/credit.ts #kube/port.ts',
    mayNot: 'express kysely nodemailer ../server/usage/csv.ts ../web/api.ts ../../operator/app.ts',
  },
  'dashboard/server/usage/payments-client.ts': {
    may: '../../payments/protocol.ts',
    mayNot: 'stripe ../../payments/stripe-provider.ts ../../payments/credits-of-payment.ts',
  },
  'dashboard/server/mail/transport.ts': { may: 'nodemailer', mayNot: 'kysely' },
  'dashboard/server/pages/sign-in.ts': {
    may: './html.ts ../page-data/people.ts',
    mayNot: '../identity/auth.ts #platform/clock.ts node:fs',
  },
  'test/integration/a.test.ts': { may: '#kube/transport.ts' },
  'gateway/app.test.ts': { may: '../test/support/builders.ts' },
}

/** [file, import path, whether the import is allowed] */
const IMPORTS = Object.entries(FENCES).flatMap(([file, { may = '', mayNot = '' }]) => [
  ...paths(may).map((path) => [file, path, true] as const),
  ...paths(mayNot).map((path) => [file, path, false] as const),
])

function paths(text: string): string[] {
  return text === '' ? [] : text.split(' ')
}

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
      expect([foreign, worker !== undefined && worker.bytes < 120_000]).toEqual([[], true])
    },
  )
})

function lintImports(): Map<string, boolean> {
  copyFileSync(join(ROOT, 'oxlint.config.ts'), join(folder, 'oxlint.config.ts'))
  const pathsOf = Map.groupBy(IMPORTS, ([file]) => file)
  for (const [file, rows] of pathsOf) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), rows.map(([, path], row) => importOf(path, row)).join(''))
  }
  const verdicts = new Map(IMPORTS.map(([file, path]) => [`${file} ${path}`, true]))
  for (const { code, filename, labels } of lint()) {
    const row = pathsOf.get(filename)?.[(labels[0]?.span.line ?? 0) - 1]
    if (code === 'eslint(no-restricted-imports)' && row) verdicts.set(`${row[0]} ${row[1]}`, false)
  }
  return verdicts
}

function importOf(path: string, row: number): string {
  const [, kind, source = path] = /^(type|name):(.*)$/.exec(path) ?? []
  if (kind === undefined) return `import '${source}'\n`
  return `import ${kind === 'type' ? 'type ' : ''}{ A${row} } from '${source}'\n`
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
