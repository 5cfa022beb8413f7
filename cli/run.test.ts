import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { sha256 } from '../test/support/hash-keys.ts'
import { run } from './run.ts'

const EXAMPLE = new URL('../examples/litellm/keys.json', import.meta.url)
const never = (): Promise<never> => Promise.reject(new Error('not called'))
/** What no command of this file uses. */
const UNUSED = { createFile: never, kubectl: never, sleep: never, local: { usageURL: never, manifests: never, object: never } }
const KEY = { token: sha256('sk-a'), key_alias: 'a', models: ['llama'] }

/** Runs the program on files in memory. */
async function headgate(args: string, files: Readonly<Record<string, string>> = {}) {
  const written = new Map<string, string>()
  let [out, report] = ['', '']
  const code = await run(args.split(' ').filter(Boolean), {
    ...UNUSED,
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
    usageToken: () => undefined,
    reachOperator: (_, use) => use('http://operator', 'token'),
    fetch,
  })
  return { code, out, report, written }
}

function objectsIn(yaml: string) {
  return parseAllDocuments(yaml).map((document) => document.toJS() as { readonly kind: string })
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

  test('ends with 3 if pages of keys are missing, so that a script notices', async () => {
    const page = JSON.stringify({ keys: [KEY], current_page: 1, total_pages: 2 })
    expect(await headgate('import litellm k', { k: page })).toMatchObject({ code: 3, report: expect.stringContaining('1 of 2 pages') })
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
    expect(objectsIn(out)).toEqual(objectsIn(await readFile(new URL('apikeys.yaml', EXAMPLE), 'utf8')))
  })

  test('turns the models of the example into the manifests beside it, without keys: exit 3 for the one that it cannot convert', async () => {
    const files = { 'config.yaml': await readFile(new URL('config.yml', EXAMPLE), 'utf8') }
    const { code, out, report } = await headgate('import litellm --config config.yaml -n demo', files)
    expect([code, objectsIn(out)]).toEqual([3, objectsIn(await readFile(new URL('models.yaml', EXAMPLE), 'utf8'))])
    expect(report).toMatch(/^3 ServedModels written to standard output, 1 entry of LiteLLM not\.\n/)
    expect(report).toContain('The ServedModels are in namespace demo; --namespace chooses another one.')
  })

  test('writes models and keys together, and says which models of the keys are absent, and which are access groups', async () => {
    const config = await readFile(new URL('config.yml', EXAMPLE), 'utf8')
    const keys = JSON.stringify([{ ...KEY, models: ['llama', 'mini', 'large', 'absent', 'gpt-*'], max_budget: 5 }])
    const { out, report } = await headgate('import litellm keys.json -c config.yaml', { 'config.yaml': config, 'keys.json': keys })
    expect(objectsIn(out).map(({ kind }) => kind)).toEqual([...['ServedModel', 'ServedModel', 'ServedModel', 'ApiKey']])
    expect(report).toContain('! large is an access group: put its models in its place: qwen-72b.')
    expect(report).toContain('! No ServedModel was written for: absent.')
    expect(report).toContain('Without pricing: llama, gpt-4.1-mini.')
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
  for (const args of [
    '',
    '--help',
    'help',
    'import --help',
    'import litellm --help',
    'balance --help',
    'credit --help',
    'credit help',
    'ledger -h',
  ])
    expect(await headgate(args)).toMatchObject({ code: 0, report: '', out: expect.stringMatching(/^Usage: headgate/) })
})

describe('headgate usage', () => {
  const rows = [
    { day: '2026-11-26', model: 'llama', key: 'shop/bot', keyUID: 'u', requests: 2, inputTokens: 20, failed: 0, cost: '0.00' },
    { day: '2026-11-27', model: 'qwen', key: 'shop/bot', keyUID: 'u', requests: 10, inputTokens: 5, failed: 0, cost: '0.00' },
  ]
  const answer = {
    account: 'acme',
    from: '2026-11-26',
    to: '2026-11-27',
    asOf: '2026-11-27T10:00:00.000Z',
    incomplete: ['2026-11-26'],
    rows,
  }
  let asked: { readonly url: string; readonly token: string | null }[]

  /** Runs the command against an operator that gives this answer. */
  async function usage(args: string, status = 200, body: unknown = answer) {
    asked = []
    let [out, report] = ['', '']
    const code = await run(['usage', ...args.split(' ').filter(Boolean)], {
      ...{ ...UNUSED, readFile: never, readInput: never, writeFile: never, now: () => 0, usageToken: () => 'from-env' },
      local: { ...UNUSED.local, usageURL: () => Promise.resolve('http://127.0.0.1:7') },
      print: (text) => void (out += text),
      report: (text) => void (report += text),
      reachOperator: (access, use) => use(`http://${access.service}.${access.namespace}`, `token-of-${access.serviceAccount}`),
      fetch: (url, init) => {
        asked.push({ url: new Request(url).url, token: new Headers(init?.headers).get('authorization') })
        return Promise.resolve(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status }))
      },
    })
    return { code, out, report }
  }

  test('prints a table without empty columns, and says how old and how complete it is', async () => {
    const { code, out, report } = await usage('acme --service-account billing --from 2026-11-26 --by day,model,key')
    expect(asked).toEqual([
      {
        url: 'http://headgate-operator-usage.headgate/usage/v1/accounts/acme?format=json&from=2026-11-26&by=day%2Cmodel%2Ckey',
        token: 'Bearer token-of-billing',
      },
    ])
    expect([code, out]).toEqual([
      0,
      'DAY          MODEL   KEY        REQUESTS   INPUT TOKENS\n2026-11-26   llama   shop/bot   2          20\n2026-11-27   qwen    shop/bot   10         5\n',
    ])
    expect(report).toBe(
      'acme, 2026-11-26 to 2026-11-27, as of 2026-11-27T10:00:00.000Z\nincomplete: Redis lost up to 10 s of counts on 2026-11-26\n',
    )
  })

  test('passes CSV and JSON on as they are, and asks an address without kubectl', async () => {
    expect((await usage('acme --url http://127.0.0.1:1 -o csv', 200, 'a,b\r\n')).out).toBe('a,b\r\n')
    expect(asked).toEqual([{ url: 'http://127.0.0.1:1/usage/v1/accounts/acme?format=csv', token: 'Bearer from-env' }])
    expect(JSON.parse((await usage('acme --url http://127.0.0.1:1 -o json')).out)).toEqual(answer)
    await usage('acme --local -o csv', 200, '')
    expect(asked).toEqual([{ url: 'http://127.0.0.1:7/usage/v1/accounts/acme?format=csv', token: null }])
  })

  test.each([
    ['', 'ACCOUNT is missing'],
    ['acme', '--service-account is missing'],
    ['acme other --url http://u', 'one ACCOUNT at a time'],
    ['Acme --url http://u', '"Acme" is not the name of an Account'],
    ['sk-secret --url file:///x', 'is not an http(s) URL'],
    ['acme --url http://u -o xml', '--output "xml": use table, csv or json'],
    ['acme --service-account -x', 'usage --help lists the options'],
    ['acme --service-account a/b', '--service-account "a/b" is not a name'],
    ['acme --colour', 'usage --help lists the options'],
    ['acme --local --url http://u', '--local and --url are both given'],
  ])('ends with 2 for `%s`, and asks nobody', async (args, why) => {
    const { code, report } = await usage(args)
    expect([code, asked]).toEqual([2, []])
    expect(report).toContain(why)
  })

  test.each([
    [403, { error: { message: 'x may not read' } }, 'the operator answers 403: x may not read'],
    [404, '<html>', 'the operator answers 404: no reason was given; check --url'],
    [200, '<html>', 'the answer is not one of a Headgate operator'],
  ])('ends with 1 when the answer is %i, with the reason', async (status, body, why) => {
    const { code, report } = await usage('acme --url http://u', status, body)
    expect([code, report]).toEqual([1, expect.stringContaining(why)])
  })

  test('prints its help', async () => {
    expect((await usage('--help')).out).toMatch(/^Usage: headgate usage ACCOUNT/)
  })
})
