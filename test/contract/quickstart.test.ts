import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { codeBlocks } from '../support/markdown-page.ts'
import { read, readQuickstart, ROOT } from '../support/documents.ts'

const { notRun, commands } = readQuickstart('README.md')
const { appVersion } = parse(read('charts/headgate/Chart.yaml')) as { readonly appVersion: string }

test('the quickstart is about ten commands, and `make e2e` runs all of them except those that make the kind cluster and load its images', () => {
  expect(notRun).toEqual(['kind create cluster', 'make kind-load'])
  expect(commands.length).toBeLessThanOrEqual(8)
})

test('every file and folder that the quickstart names exists', () => {
  const named = commands.join(' ').match(/\b(?:charts|examples)\/[\w./-]*/g) ?? []
  expect(named).toEqual(['charts/headgate', 'examples/quickstart/'])
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('`make kind-load` builds the images of the quickstart', () => {
  expect(commands[0]).toContain('--set operator.image.registry=localhost,gateway.image.registry=localhost')
  const values = parse(read('charts/headgate/values.yaml')) as Record<
    'operator' | 'gateway',
    { image: { repository: string; tag: string } }
  >
  expect([values.operator.image, values.gateway.image]).toMatchObject([
    { repository: 'headgate/operator', tag: '' },
    { repository: 'headgate/gateway', tag: '' },
  ])
  const [deployment] = parseAllDocuments(read('examples/quickstart/model-server.yaml')).map((document) => document.toJS() as unknown)
  expect(deployment).toMatchObject({
    spec: { template: { spec: { containers: [{ image: `localhost/headgate/stub-model:${appVersion}` }] } } },
  })
  const packed = [...read('test/parts/images.sh').matchAll(/"\$\(tags ([\w-]+)\)"/g)].map(([, name]) => name)
  expect(packed).toEqual(['gateway', 'operator', 'dashboard', 'stub-model'])
})

test('the notes of the chart name files, objects and a namespace that exist', () => {
  const notes = read('charts/headgate/templates/NOTES.txt')
  const files = notes.match(/\bexamples\/[\w./-]+/g) ?? []
  expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  for (const command of commands.filter((line) => /^kubectl (create namespace|apply|-n demo wait)/.test(line)))
    expect(notes).toContain(command)
})

test('the commands of examples/README.md equal the commands of the quickstart after the installation', () => {
  const [block] = codeBlocks(read('examples/README.md')).filter(({ language }) => language === 'sh')
  expect(block?.text.trim().split('\n')).toEqual(commands.slice(1, 4))
})

test('the README of the chart begins with the install command of the quickstart', () => {
  const [block] = codeBlocks(read('charts/headgate/README.md'))
  expect(block?.text.replaceAll(/\s*\\\n\s*/g, ' ').split('\n')).toEqual(['make kind-load', commands[0], ''])
})
