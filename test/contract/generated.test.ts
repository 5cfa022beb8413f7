import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { crdName } from '#api/crd.ts'
import { API_KINDS } from '#api/kinds.ts'
import { generatedFiles } from '../../generated-files.ts'
import { ruleMessage } from '#api/rule.ts'

const root = new URL('../../', import.meta.url)
const files = generatedFiles()

test.each([...files.keys()])('%s equals the output of `make generate`', async (path) => {
  expect(await readFile(new URL(path, root), 'utf8')).toBe(files.get(path))
})

test.each(['crds/', 'charts/headgate/templates/crds/'])('%s holds only generated files', async (folder) => {
  const expected = [...files.keys()].filter((path) => path.startsWith(folder))
  expect((await readdir(new URL(folder, root))).map((name) => folder + name).toSorted()).toEqual(expected.toSorted())
})

test('each CRD is smaller than 60 KiB', () => {
  const sizes = [...files].filter(([path]) => path.startsWith('crds/')).map(([, text]) => Buffer.byteLength(text))
  expect(Math.max(...sizes)).toBeLessThan(60 * 1024)
})

test('the chart installs the same definitions if crds.enabled is set, and keeps them at an uninstall if crds.keep is set', () => {
  for (const kind of API_KINDS) {
    const template = files.get(`charts/headgate/templates/crds/${crdName(kind)}.yaml`) ?? ''
    const actions = template.match(/\{\{.*?\}\}/g)
    expect(actions).toEqual(['{{- if .Values.crds.enabled }}', '{{- if .Values.crds.keep }}', '{{- end }}', '{{- end }}'])
    const plain = template.replaceAll(/^ *\{\{.*\}\}\n/gm, '').replace('  annotations:\n    helm.sh/resource-policy: keep\n', '')
    expect(plain).toBe(files.get(`crds/${crdName(kind)}.yaml`))
  }
})

test('the message of every rule begins with its field and ends with a remedy', () => {
  for (const { path, rules } of API_KINDS.flatMap((kind) => kind.rules)) {
    for (const rule of rules) expect(ruleMessage(rule), `${path}#${rule.id}`).toMatch(/^\S.{10,}: \S.{10,}$/)
  }
})
