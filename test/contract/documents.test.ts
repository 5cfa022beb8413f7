import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { apiKeyKind } from '../../operator/api/apikey-kind.ts'
import { isOfKind } from '../../operator/api/kind.ts'
import { servedModelKind } from '../../operator/api/served-model-kind.ts'
import { validateManifest } from '../../operator/api/validate.ts'
import { curlLine } from '../../standalone/banner.ts'
import { anchors, codeBlocks, codeSpans, linkTargets } from '../support/markdown-page.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOREIGN = new Set(['node_modules', 'dist', '.headgate', '.git', 'coverage'])
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const documents = filesBelow('.').filter((path) => path.endsWith('.md'))
const examples = filesBelow('examples').filter((path) => path.endsWith('.yaml'))

describe.each(documents)('%s', (path) => {
  const page = read(path)

  test('its links lead somewhere', () => {
    const inside = linkTargets(page).filter((target) => !/^[a-z]+:/.test(target))
    expect(inside.filter((target) => !resolves(path, target))).toEqual([])
  })

  test('every make target that it names exists', () => {
    const targets = new Set([...read('Makefile').matchAll(/^([a-z0-9-]+):/gm)].map(([, name]) => name))
    const commands = [...codeSpans(page), ...codeBlocks(page).map(({ text }) => text)].join('\n')
    const named = [...commands.matchAll(/(?:^|[\s;&(])make +([a-z][a-z0-9-]*)/gm)].map(([, name]) => name)
    expect(named.filter((name) => !targets.has(name))).toEqual([])
  })
})

describe('the manifests in the README', () => {
  const readme = read('README.md')
  const shown = codeBlocks(readme).filter(({ language, text }) => language === 'yaml' && text.includes('apiVersion: headgate.dev/'))

  test('are an ApiKey, a ServedModel, and an ApiKey with limits', () => {
    expect(shown.map(({ text }) => (parse(text) as { kind: string }).kind)).toEqual(['ApiKey', 'ServedModel', 'ApiKey'])
  })

  test.each(shown)('are files of examples/, word by word, and valid', ({ text }) => {
    expect(examples.map(read)).toContain(text)
    expect(validateManifest(parse(text))).toMatchObject({ ok: true })
    const file = examples.find((example) => read(example) === text) ?? ''
    expect(readme).toContain(`<!-- ${file} -->\n\n\`\`\`yaml\n${text}`)
  })
})

test('the curl line of the README is the one that `make run` prints', () => {
  const [key, model] = ['apikey', 'model'].map((name) => {
    const validated = validateManifest(parse(read(`examples/standalone/${name}.yaml`)))
    return validated.ok ? validated.object : undefined
  })
  if (!isOfKind(apiKeyKind, key) || !isOfKind(servedModelKind, model)) throw new TypeError('the examples of make run are not valid')
  const secretFile = '.headgate/secrets/demo/first-key/SERVICE_API_KEY'
  const printed = curlLine({ baseURL: 'http://127.0.0.1:8080', key, secretFile, models: [model] })
  const line = (text: string): string =>
    text
      .slice(text.indexOf('curl '))
      .trim()
      .replaceAll(/\s*\\\n\s*/g, ' ')
  expect(codeBlocks(read('README.md')).map(({ text }) => line(text))).toContain(line(printed))
})

test('every example is named in examples/README.md', () => {
  const page = read('examples/README.md')
  const linked = linkTargets(page).map((target) => join('examples', target))
  expect(examples.filter((path) => !linked.includes(path))).toEqual([])
})

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return FOREIGN.has(entry.name) ? [] : filesBelow(path)
    return [path]
  })
}

/** Whether a link from a document finds its file and, in a document, its heading. */
function resolves(from: string, target: string): boolean {
  const [file = '', anchor] = target.split('#')
  const path = file === '' ? from : relative('.', join(dirname(from), decodeURIComponent(file)))
  if (!existsSync(join(ROOT, path))) return false
  return anchor === undefined || !path.endsWith('.md') || anchors(read(path)).has(anchor)
}
