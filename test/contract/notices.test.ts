import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, it } from 'vitest'
import { bundleOptions, noticesOf } from '../../build.ts'

const ROOT = join(import.meta.dirname, '../..')

it('the notices of a bundle name each package in it once, with its licence', async () => {
  const { metafile } = await build({ ...bundleOptions('gateway'), write: false })
  const inputs = Object.keys(metafile.inputs)
  const notices = noticesOf(inputs)
  const packages = new Set(inputs.flatMap((path) => /^node_modules\/(@[^/]+\/[^/]+|[^/]+)\//.exec(path)?.[1] ?? []))
  expect(packages.size).toBeGreaterThan(10)
  const headings = [...notices.matchAll(/^={80}\n(\S+) \S+ \((.+)\)$/gm)]
  expect(new Set(headings.map(([, name]) => name))).toEqual(packages)
  expect(headings.filter(([, , license]) => license === 'unknown')).toEqual([])
  for (const name of ['express', 'undici', 'ioredis'])
    expect(notices).toContain(readFileSync(join(ROOT, 'node_modules', name, 'LICENSE'), 'utf8').trim())
})

it.each(['gateway', 'operator', 'dashboard'])(
  'the image of the %s holds them, and no package runs a script while the image is built',
  (program) => {
    const dockerfile = readFileSync(join(ROOT, program, 'Dockerfile'), 'utf8')
    expect(dockerfile).toContain(`COPY --from=build /src/dist/${program}.notices.txt /app/`)
    expect(dockerfile).toContain('npm ci --ignore-scripts ')
  },
)
