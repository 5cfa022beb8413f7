import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { findHelm, template } from '../support/chart.ts'
import { MATRIX } from '../support/chart-matrix.ts'
import { openLab } from '../support/lab.ts'

/** What the API server itself says about a rendered chart: unknown fields, CEL that does not compile, pods beyond the restricted profile. */
const lab = openLab()

beforeAll(async () => {
  const restricted = { 'pod-security.kubernetes.io/warn': 'restricted' }
  for (const namespace of ['headgate', 'shop', 'lab', 'old']) await lab.plane.namespace(namespace, restricted)
})
afterAll(() => lab.close())
beforeEach(({ skip }) => {
  skip(findHelm() === undefined, 'helm is not in the cache; `make test` builds it')
})

it.each(Object.entries(MATRIX))('takes every object of %s, without a warning', async (name, set) => {
  const file = join(lab.folder, `chart-${name}.yaml`)
  writeFileSync(file, template([...set, 'crds.enabled=false']).stdout)
  const said = await lab.plane.kubectl('apply', '--dry-run=server', '--validate=strict', '--warnings-as-errors', '-f', file)
  expect(said).toMatch(/^validatingadmissionpolicy\S* created \(server dry run\)$/m)
  expect(said).toMatch(/^job\.batch\/headgate-uninstall created \(server dry run\)$/m)
})
