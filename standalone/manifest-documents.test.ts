import { describe, expect, it, test } from 'vitest'
import { decideManifestChanges } from './manifest-changes.ts'
import { parseManifestFile } from './manifest-documents.ts'

const HEAD = 'apiVersion: headgate.dev/v1alpha1\nkind: ApiKey\nmetadata:\n  name: bot\n'
const GOOD = `${HEAD}spec: { models: [a] }\n`
const changesOf = async (text: string) => decideManifestChanges([await parseManifestFile('a.yaml', text)], [])
const linesOf = async (text: string): Promise<string[]> => (await changesOf(text)).complaints.map(({ line }) => line)
const namesOf = async (text: string): Promise<string[]> => (await changesOf(text)).writes.map(({ object }) => object.metadata.name)
const KEPT = '(objects from this file stay in force)'

/** A text, and the line about it after `a.yaml:`. */
const MISTAKES: ReadonlyArray<readonly [text: string, line: string]> = [
  [`${HEAD}spec:\n  models: [*]\n`, `6:12: document 1: * without quotes begins an alias of YAML; write '*' in quotes ${KEPT}`],
  [
    `${HEAD}spec:\n  models:\n    - *-mini\n`,
    `7:7: document 1: * without quotes begins an alias of YAML; write '*-mini' in quotes ${KEPT}`,
  ],
  [
    `${GOOD}---\n${HEAD}spec: { models: [llama, *] }\n`,
    `11:25: document 2: * without quotes begins an alias of YAML; write '*' in quotes ${KEPT}`,
  ],
  [`${HEAD}spec:\n\tmodels: [a]\n`, `6:1: document 1: a tab is used for indentation; indent with spaces ${KEPT}`],
  [
    `${HEAD}spec:\n  models: [a\n`,
    `7:1: document 1: a bracket is not closed, or the next line is not indented below it; close the bracket ${KEPT}`,
  ],
  [`${HEAD}spec\n`, `5:1: document 1: a line has no ":" after its field; write the field as "key: value" ${KEPT}`],
  [
    `${HEAD}spec:\n    models: [a]\n  state: Active\n`,
    `7:1: document 1: the indentation does not fit; indent the fields of one object by the same number of spaces ${KEPT}`,
  ],
  [`${HEAD}spec: models: a\n`, `5:7: document 1: a second ": " is in one line; write the value in quotes, or begin a new line ${KEPT}`],
  [`${HEAD}spec: {}\nspec: {}\n`, `6:1: document 1: a field is written twice in one object; remove one of the two ${KEPT}`],
  [HEAD.replace('ApiKey', 'APIKey'), '2:1: APIKey default/bot: kind: "APIKey" is not known; did you mean ApiKey?'],
  [HEAD.replace('ApiKey', 'Team'), '2:1: Team default/bot: kind: "Team" is not known; use ApiKey, ServedModel, Plan, Account or Credit'],
  [
    'apiVersion: v1\nkind: Service\nmetadata: { name: a }\n',
    '2:1: Service default/a: kind: "Service" is not used without a cluster; remove the document',
  ],
  [HEAD.replace('bot', '123'), `4:3: document 1: metadata.name: 123 is a number, not text; write it in quotes: "123" ${KEPT}`],
  ['metadata: { name: a }\n', `1:1: document 1: kind: is missing; add it ${KEPT}`],
  ['kind:\nmetadata: { name: a }\n', `1:1: document 1: kind: has no value; write a value, or remove the field ${KEPT}`],
  ['- kind: ApiKey\n', `1:1: document 1: is a list, not an object; write an object with the fields kind, metadata ${KEPT}`],
  [bomb(), `1:1: document 1: its aliases multiply the document; write the values in place of the aliases ${KEPT}`],
  ['apiVersion: v1\nkind: List\n', `1:1: document 1: items: is missing or not a list; write the objects of the List below items ${KEPT}`],
  [
    `${GOOD}---\n${GOOD}`,
    '10:3: ApiKey default/bot: metadata.name: is the name of document 1 of this file too, which is in force; rename or remove one of the two',
  ],
  [
    `${HEAD}spec:\n  models:\n    - a\n    - "b*c"\n`,
    '8:7: ApiKey default/bot: spec.models[1]: "b*c" has * inside or at both ends; write * at one end only, as in "qwen-*" or "*-mini" (it is not in force)',
  ],
  [
    `${HEAD}spec:\n  models: [a]\n  secret: { template: { labels: { acme.io/a.b: "x y" } } }\n`,
    '7:25: ApiKey default/bot: spec.secret.template.labels.acme.io/a.b: "x y" is not a label value; use letters, digits, "-", "_" and ".", with a letter or a digit at both ends (it is not in force)',
  ],
  [
    `${HEAD}spec:\n  state: on\n  models: []\n  ttlSeconds: 1\n`,
    '6:3: ApiKey default/bot: spec.state: "on" is not a known value; use Active, Suspended or Revoked (2 more in spec.models, spec.ttlSeconds; it is not in force)',
  ],
]

describe('a mistake in a manifest file is named with line, column and remedy', () => {
  test.each(MISTAKES)('%j', async (text, line) => {
    expect(await linesOf(text)).toContain(`a.yaml:${line}`)
  })

  it('shows nothing of a file that may hold a Secret', async () => {
    expect((await linesOf('apiVersion: v1\nkind: Secret\nmetadata: { name: a }\nstringData:\n  token: *hush\n')).join('')).not.toContain(
      'hush',
    )
    expect((await linesOf('apiVersion: v1\nkind: "Secret"\nstringData: { token: "hush }\n')).join('')).not.toContain('hush')
  })
})

describe('output of kubectl is read', () => {
  const list = (kind: string, items: string): string => `apiVersion: v1\nkind: ${kind}\nmetadata: {}\nitems:\n${items}`
  const item = (name: string, models: string): string =>
    `- apiVersion: headgate.dev/v1alpha1\n  kind: ApiKey\n  metadata: { name: ${name}, finalizers: [headgate.dev/revoke] }\n  spec: { models: ${models} }\n`

  it('the position of an error in a file of more than a megabyte, in a document and in an item of a List', async () => {
    const good = (index: number): string => `${HEAD.replace('bot', `k${index}`)}spec: { models: [a] }\n`
    const bad = `${HEAD}spec:\n  modles: [a]\n`
    const documents = Array.from({ length: 300 }, (_, index) => `${good(index)}# ${'x'.repeat(4_000)}\n`).join('---\n')
    expect(documents.length).toBeGreaterThan(1_048_576)
    const at = documents.split('\n').length
    const field = 'ApiKey default/bot: spec.modles: there is no such field; did you mean models?'
    expect(await linesOf(`${documents}---\n${bad}`)).toEqual([expect.stringContaining(`a.yaml:${at + 6}:3: ${field}`)])
    const items = [good(0), good(1), bad].map((text) => `-   ${text.trimEnd().replaceAll('\n', '\n    ')}\n`).join('')
    expect(await linesOf(list('List', items))).toEqual([expect.stringContaining(`a.yaml:${4 + 5 + 5 + 6}:7: ${field}`)])
  })

  it.each(['List', 'ApiKeyList'])('the objects of a %s, each with its own errors', async (kind) => {
    const text = list(kind, item('one', '[a]') + item('two', '[]') + item('three', '[c]'))
    expect(await namesOf(text)).toEqual(['one', 'three'])
    expect(await linesOf(text)).toEqual([
      'a.yaml:12:11: ApiKey default/two: spec.models: is an empty list; name at least one model; ["*"] allows all models (it is not in force)',
    ])
  })

  it('anchors and intended aliases', async () => {
    expect(await namesOf(`${HEAD}spec:\n  models: &list [a]\n---\n${HEAD.replace('bot', 'other')}spec: { models: [b] }\n`)).toEqual([
      'bot',
      'other',
    ])
    expect(await namesOf(`${HEAD}  labels: { a: &team x, b: *team }\nspec: { models: [a] }\n`)).toEqual(['bot'])
  })

  it('a byte order mark and the line ends of Windows', async () => {
    expect(await namesOf(`\ufeff${HEAD}spec: { models: [a] }\n`.replaceAll('\n', '\r\n'))).toEqual(['bot'])
  })
})

function bomb(): string {
  const lines = Array.from({ length: 8 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]\n`)
  return `l0: &l0 [x, x]\n${lines.join('')}`
}
