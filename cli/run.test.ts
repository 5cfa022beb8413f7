import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { sha256 } from '../test/support/hash-keys.ts'
import { run } from './run.ts'

const EXAMPLE = new URL('../examples/litellm/keys.json', import.meta.url)
const KEY = { token: sha256('sk-a'), key_alias: 'a', models: ['llama'] }

/** Runs the program on files in memory. */
async function headgate(args: string, files: Readonly<Record<string, string>> = {}) {
  const written = new Map<string, string>()
  let [out, report] = ['', '']
  const code = await run(args.split(' ').filter(Boolean), {
    readFile: (path) =>
      files[path] === undefined ? Promise.reject(Object.assign(new Error('no file'), { code: 'ENOENT' })) : Promise.resolve(files[path]),
    readInput: () => Promise.resolve(files['-'] ?? ''),
    writeFile: (path, text) =>
      path.startsWith('/no')
        ? Promise.reject(Object.assign(new Error('no folder'), { code: 'ENOENT' }))
        : Promise.resolve(void written.set(path, text)),
    print: (text) => void (out += text),
    report: (text) => void (report += text),
    now: () => Date.UTC(2026, 5, 1),
  })
  return { code, out, report, written }
}

describe('headgate import litellm', () => {
  test('writes manifests to standard output and the report beside them: exit 0', async () => {
    const { code, out, report } = await headgate('import litellm keys.json -n apps', { 'keys.json': JSON.stringify([KEY]) })
    expect([code, out.startsWith('apiVersion: headgate.dev/v1alpha1\n')]).toEqual([0, true])
    expect(report).toMatch(/^1 key read: 1 written to standard output, 0 not written\./)
    expect(out).not.toContain('not written')
  })

  test('reads standard input and writes a file', async () => {
    const { code, out, written } = await headgate('import litellm - -o keys.yaml', { '-': JSON.stringify([KEY]) })
    expect([code, out, [...written.keys()]]).toEqual([0, '', ['keys.yaml']])
  })

  test('ends with 3 if a key was not written, and with 1 if none can be', async () => {
    expect((await headgate('import litellm k', { k: JSON.stringify([KEY, { ...KEY, token: 'x' }]) })).code).toBe(3)
    expect(await headgate('import litellm k', { k: '[]' })).toMatchObject({ code: 1, out: '' })
    expect(await headgate('import litellm missing.json')).toMatchObject({
      code: 1,
      report: expect.stringMatching(/^headgate: missing\.json cannot be read \(ENOENT\)/),
    })
    expect(await headgate('import litellm k -o /no/folder', { k: JSON.stringify([KEY]) })).toMatchObject({
      code: 1,
      report: expect.stringContaining('--output /no/folder cannot be written'),
    })
  })

  test('writes YAML that kubectl reads as intended: an alias may be a word of YAML 1.1', async () => {
    const aliases = ['no', 'on', '12:30:00', '1e3', '~', '2027-01-01', '0x10', 'null']
    const keys = aliases.map((key_alias, index) => ({ ...KEY, key_alias, token: sha256(`sk-${index}`) }))
    const { out } = await headgate('import litellm k', { k: JSON.stringify(keys) })
    const documents = parseAllDocuments(out, { version: '1.1' }).map((document) => document.toJS() as { spec: { displayName: unknown } })
    expect(documents.map(({ spec }) => spec.displayName)).toEqual(aliases)
  })

  test('turns the example into the manifests beside it', async () => {
    const files = { 'keys.json': await readFile(EXAMPLE, 'utf8') }
    const { code, out } = await headgate('import litellm keys.json -n demo --team-models 5f1d9c1e-team-blue=llama,qwen-72b', files)
    expect(code).toBe(0)
    const shown = parseAllDocuments(await readFile(new URL('apikeys.yaml', EXAMPLE), 'utf8')).map((document) => document.toJS() as unknown)
    expect(parseAllDocuments(out).map((document) => document.toJS() as unknown)).toEqual(shown)
  })
})

describe('a wrong command line ends with 2 and names the remedy', () => {
  test.each([
    ['frobnicate', /"frobnicate" is not a command; headgate --help/],
    ['import', /only litellm can be imported/],
    ['import portkey keys.json', /import "portkey": only litellm/],
    ['import litellm', /FILE is missing/],
    ['import litellm a b', /one FILE at a time/],
    ['import litellm a -n Big_Name', /--namespace "Big_Name" is not the name of a namespace/],
    ['import litellm a --team-models blue', /--team-models "blue" is not of the form/],
    ['import litellm a --nope', /nope.*--help/],
  ])('%s', async (args, message) => {
    expect(await headgate(args, { a: JSON.stringify([KEY]) })).toMatchObject({ code: 2, out: '', report: expect.stringMatching(message) })
  })

  test('without repeating a key that was pasted in the wrong place', async () => {
    const { report } = await headgate('import sk-1234567890abcdef')
    expect(report).not.toContain('1234567890')
  })
})

test('--help describes the program and does nothing else', async () => {
  for (const args of ['', '--help', 'help', 'import --help', 'import litellm --help'])
    expect(await headgate(args)).toMatchObject({ code: 0, report: '', out: expect.stringMatching(/^Usage: headgate/) })
})
