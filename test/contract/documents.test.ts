import { existsSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { apiKeyKind } from '#api/apikey-kind.ts'
import { API_KEY_CONDITIONS, type ConditionTable, SERVED_MODEL_CONDITIONS } from '#api/conditions.ts'
import { isOfKind } from '#api/kind.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { validateManifest } from '#api/validate.ts'
import { servedName } from '../../operator/kinds/served-model/names.ts'
import { curlLine } from '../../standalone/banner.ts'
import { commandsOf, DOCUMENTS, filesBelow, read, ROOT } from '../support/documents.ts'
import { anchors, codeBlocks, codeSpans, linkTargets, rowsOf, sectionOf } from '../support/markdown-page.ts'

const examples = filesBelow('examples').filter((path) => path.endsWith('.yaml'))
const isExternal = (target: string): boolean => /^[a-z]+:/.test(target)

describe.each(DOCUMENTS)('%s', (path) => {
  const page = read(path)

  test('the links of the document lead to files and headings that exist', () => {
    const inside = linkTargets(page).filter((target) => !isExternal(target))
    expect(inside.filter((target) => !resolves(path, target))).toEqual([])
  })

  test('every make target that the document names exists', () => {
    const targets = new Set([...read('Makefile').matchAll(/^([a-z0-9-]+):/gm)].map(([, name]) => name))
    const commands = [...codeSpans(page), ...codeBlocks(page).map(({ text }) => text)].join('\n')
    const named = [...commands.matchAll(/(?:^|[\s;&(])make +([a-z][a-z0-9-]*)/gm)].map(([, name]) => name)
    expect(named.filter((name = '') => !targets.has(name))).toEqual([])
  })

  test('every path of this repository that the document names as code exists', () => {
    const named = codeSpans(page).filter((span) =>
      /^(api|lib|gateway|operator|standalone|cli|test|charts|examples|docs|crds)\/[\w./-]*$/.test(span),
    )
    const exists = (name: string): boolean => [name, join(dirname(path), name)].some((place) => existsSync(join(ROOT, place)))
    expect(named.filter((name) => !exists(name))).toEqual([])
  })
})

test('test/README.md lists the promise tests by their paths', () => {
  const listed = codeSpans(sectionOf(read('test/README.md'), '## Promise tests')).filter((span) => span.endsWith('.test.ts'))
  expect(listed.length).toBeGreaterThan(45)
  expect(listed.filter((path) => !path.includes('*') && !existsSync(join(ROOT, path)))).toEqual([])
})

test.each(['## A manifest', '## A request', '## A settlement'])('docs/architecture.md: %s names five files to open', (heading) => {
  const files = codeSpans(sectionOf(read('docs/architecture.md'), heading)).filter((span) => span.endsWith('.ts'))
  expect(files.map((path) => [path, existsSync(join(ROOT, path))])).toEqual(files.map((path) => [path, true]))
  expect(files).toHaveLength(5)
})

test('every decision that a comment names by number is in docs/decisions', () => {
  const numbers = new Set(filesBelow('docs/decisions').map((path) => Number(basename(path).slice(0, 2))))
  const named = filesBelow('.')
    .filter((path) => /\.(ts|md)$|Dockerfile$/.test(path))
    .flatMap((path) => [...read(path).matchAll(/\bdecision (\d+)\b/g)].map(([, number]) => ({ path, number: Number(number) })))
  expect(named.filter(({ number }) => !numbers.has(number))).toEqual([])
})

test('the index of the decisions has the number, the title and the file of each', () => {
  const listed = [...read('docs/decisions/README.md').matchAll(/^- (\d+): \[(.+)\]\((.+)\)$/gm)]
  const files = filesBelow('docs/decisions').filter((path) => basename(path) !== 'README.md')
  expect(listed.map(([, number, title, file]) => [file, `# ${number}. ${title}`])).toEqual(
    files.toSorted().map((path) => [basename(path), read(path).split('\n')[0]]),
  )
})

test('links to other sites use https; this test prints them, since no test may call other sites', () => {
  const links = DOCUMENTS.flatMap((path) => linkTargets(read(path)).filter(isExternal))
  const unique = [...new Set(links)].toSorted()
  process.stdout.write(`links to other sites (${unique.length}), not called:\n${unique.map((link) => `  ${link}\n`).join('')}`)
  expect(unique.filter((link) => !link.startsWith('https://'))).toEqual([])
})

describe('manifests in documents', () => {
  const shown = DOCUMENTS.flatMap((document) =>
    codeBlocks(read(document))
      .filter(({ language, text }) => language === 'yaml' && /^apiVersion: /m.test(text))
      .map(({ text, start }) => ({ document, text, start })),
  )

  test.each(shown)('$document shows a file of examples/, word by word, and names the file', ({ document, text, start }) => {
    const file = examples.find((example) => read(example) === text)
    expect(file, text).toBeDefined()
    expect(read(document).slice(0, start).trimEnd().endsWith(`<!-- ${file} -->`), `<!-- ${file} --> above the block`).toBe(true)
  })

  test('the README shows an ApiKey and a ServedModel', () => {
    const kinds = shown.filter(({ document }) => document === 'README.md').map(({ text }) => (parse(text) as { kind: string }).kind)
    expect(kinds).toEqual(['ApiKey', 'ServedModel'])
  })
})

describe('commands in documents', () => {
  const commands = DOCUMENTS.flatMap((path) => commandsOf(path, read(path)))

  test('every block to paste names the test that runs the block, or the reason why no test does', () => {
    const silent = commands.filter(({ mark }) => mark === undefined)
    expect(silent.map(({ document, text }) => `${document}: ${text.split('\n')[0] ?? ''}`)).toEqual([])
  })

  test.each(commands)('$document: the test that a block names exists and reads its document', ({ document, mark }) => {
    if (mark === undefined) return
    if ('notRun' in mark) return expect(mark.notRun).toMatch(/^.{10,}$/)
    expect(existsSync(join(ROOT, mark.runBy)), mark.runBy).toBe(true)
    expect(read(mark.runBy)).toContain(`'${document}'`)
  })
})

test('the curl line of the README is the one that `make run` prints', () => {
  const [key, model] = ['apikey', 'model'].map((name) => {
    const validated = validateManifest(parse(read(`examples/standalone/${name}.yaml`)))
    return validated.ok ? validated.object : undefined
  })
  if (!isOfKind(apiKeyKind, key) || !isOfKind(servedModelKind, model)) throw new TypeError('the examples of make run are not valid')
  const name = servedName(model)
  const secretFile = '.headgate/secrets/demo/first-key/SERVICE_API_KEY'
  const printed = curlLine({ baseURL: 'http://127.0.0.1:8080', key, secretFile, model: name })
  const line = (text: string): string =>
    text
      .slice(text.indexOf('curl '))
      .trim()
      .replaceAll(/\s*\\\n\s*/g, ' ')
  expect(codeBlocks(read('README.md')).map(({ text }) => line(text))).toContain(line(printed))
})

test('the picture of the README holds no key, and shows its Secret, a limit, a refusal and a key that works again', () => {
  const picture = read('docs/first-key.svg')
  expect(picture).not.toMatch(/sk-hg1[0-9A-Za-z]{20}/)
  expect(picture).toMatch(/SERVICE_API_KEY[^]*HTTP 200[^]*HTTP 429[^]*Suspended[^]*HTTP 401[^]*HTTP 200/)
  expect(read('README.md')).toContain('](docs/first-key.svg)')
})

test('every example is named in examples/README.md', () => {
  const page = read('examples/README.md')
  const linked = linkTargets(page).map((target) => join('examples', target))
  expect(examples.filter((path) => !linked.includes(path))).toEqual([])
})

describe('docs/operations.md', () => {
  const page = read('docs/operations.md')

  test.each<[string, ConditionTable]>([
    ['## Conditions of an ApiKey', API_KEY_CONDITIONS],
    ['## Conditions of a ServedModel', SERVED_MODEL_CONDITIONS],
  ])('%s: every reason of the code has one row with its conditions and what to do, and no other reason has one', (heading, table) => {
    const rows = rowsOf(sectionOf(page, heading), 'reason')
    const stated = rows.map(({ reason = '', condition = '' }) => `${reason.replaceAll('`', '')}: ${condition}`)
    expect(stated.toSorted()).toEqual(reasonsOf(table).toSorted())
    for (const row of rows) for (const cell of ['meaning', 'what to do']) expect(row[cell], row['reason']).toMatch(/^[A-Z`].{5,}\.$/)
  })

  function reasonsOf(table: ConditionTable): string[] {
    const conditions = new Map<string, string[]>()
    for (const [type, { reasons }] of Object.entries(table))
      for (const reason of Object.keys(reasons)) conditions.set(reason, [...(conditions.get(reason) ?? []), type])
    return [...conditions].map(([reason, types]) => `${reason}: ${types.join(', ')}`)
  }
})

function resolves(from: string, target: string): boolean {
  const [file = '', anchor] = target.split('#')
  const path = file === '' ? from : relative('.', join(dirname(from), decodeURIComponent(file)))
  if (!existsSync(join(ROOT, path))) return false
  return anchor === undefined || !path.endsWith('.md') || anchors(read(path)).has(anchor)
}
