import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ERROR_ROWS, type ErrorFormat, type ErrorRow } from '../../gateway/errors.ts'
import { formatOfPath } from '../../gateway/http/exchange.ts'
import { ROUTES } from '../../gateway/routes/route-table.ts'
import { ownHeaders } from '../../gateway/upstream/model-table.ts'
import { forwardedHeaders, returnedHeaders, upstreamHeaders } from '../../gateway/upstream/upstream-headers.ts'
import { NEVER_FORWARDED, NEVER_FORWARDED_WORDS } from '#contract/values/forward-headers.ts'
import { read, ROOT } from '../support/documents.ts'
import { type FrontGateway, startFront } from '../support/front-gateway.ts'
import { codeSpans, rowsOf, sectionOf, tableOf } from '../support/markdown-page.ts'

const page = read('docs/contract.md')
const plain = (cell: string | undefined): string => (cell ?? '').replaceAll('`', '')

describe('errors', () => {
  const code = (text: string | null): string => (text === null ? '–' : `\`${text}\``)

  /** The beginning of a message, and also the beginning without the value where that value may be unknown. */
  const beginning = (row: ErrorRow, format: ErrorFormat): string => {
    const [starts, bare] = [row.starts[format], row.bare[format]]
    return starts.startsWith(bare) ? code(starts) : `${code(starts)} or ${code(bare)}`
  }
  const perFormat = (openai: string, anthropic: string, both: (one: string, other: string) => string): string =>
    openai === anthropic ? openai : both(openai, anthropic)

  const headersOf = (row: ErrorRow): string => {
    const retryAfter = row.retryAfterSeconds === undefined ? [] : [`R=${row.retryAfterSeconds}`]
    const flags = [row.noRetry && 'N', row.id === 'wrongMethod' && 'A', row.challenge && 'W', ...retryAfter, row.close && 'C']
    return flags.filter((flag) => flag !== false).join(' ')
  }
  const statusOf = ({ status }: ErrorRow): string =>
    perFormat(String(status.openai), String(status.anthropic), (openai, anthropic) => `${openai} / ${anthropic}`)

  test('the wire table equals the catalogue, row by row', () => {
    const stated = ERROR_ROWS.toSorted((a, b) => a.number - b.number).map((row) => ({
      row: String(row.number),
      error: code(row.id),
      status: statusOf(row),
      'OpenAI type': code(row.openai.type),
      code: code(row.openai.code),
      param: code(row.openai.param),
      'Anthropic type': code(row.anthropic),
      headers: headersOf(row),
    }))
    expect(tableOf(page, 'row').rows).toEqual(stated)
  })

  test('the table of messages equals the catalogue, row by row', () => {
    const stated = ERROR_ROWS.map((row) => ({
      'message of': code(row.id),
      'begins with': perFormat(beginning(row, 'openai'), beginning(row, 'anthropic'), (a, b) => `OpenAI: ${a}; Anthropic: ${b}`),
    }))
    expect(tableOf(page, 'message of').rows).toEqual(stated)
  })

  const ACTIONS = ['### Fix the request', '### Fix the key', '### Wait and ask again', '### Tell the platform team'] as const
  const rowsBelow = (heading: (typeof ACTIONS)[number]) => rowsOf(sectionOf(page, heading), 'error')
  const advised = ACTIONS.flatMap(rowsBelow)

  test('every error stands in exactly one of the four tables that say what to do, with its status and its cause', () => {
    const byName = (a: { error: string | undefined }, b: { error: string | undefined }) => String(a.error).localeCompare(String(b.error))
    const stated = ERROR_ROWS.map((row) => ({ error: code(row.id), status: statusOf(row), when: row.when }))
    expect(advised.map(({ error, status, when }) => ({ error, status, when })).toSorted(byName)).toEqual(stated.toSorted(byName))
  })

  test('every error says what to do about it', () => {
    for (const row of advised) expect(row['what to do'], row['error']).toMatch(/^[A-Z].{10,}\.$/)
  })

  test('the page says to repeat exactly the errors that SDKs repeat, except an internal error, which is a bug to report', () => {
    const repeated = rowsBelow('### Wait and ask again').map((row) => plain(row['error']))
    const retried = ERROR_ROWS.filter(({ id, noRetry }) => !noRetry && id !== 'internalError').map(({ id }) => String(id))
    expect(repeated.toSorted()).toEqual(retried.toSorted())
  })
})

describe('routes', () => {
  const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
  const documented = tableOf(page, 'method').rows.map((row) => ({
    methods: (row['method'] ?? '').split(', '),
    path: plain(row['path']),
    format: row['error format'],
  }))
  let front: FrontGateway

  beforeAll(async () => {
    front = await startFront()
  })
  afterAll(() => front.stop())

  test('the table of routes equals the routes of the code', () => {
    const served = ROUTES.flatMap(({ methods, paths }) => paths.map((path) => `${methods} ${path}`))
    const stated = documented.map(({ methods, path }) => `${methods.join(', ')} ${path}`)
    expect(stated.toSorted()).toEqual(served.toSorted())
  })

  test.each(documented)('$path takes the documented methods, and refuses the others by name in its own format', async (route) => {
    const { path, methods, format } = route
    for (const method of METHODS) {
      const { status, headers } = await fetch(front.base + path.replace('{id}', 'a%2Fb'), { method })
      expect([method, status === 405], path).toEqual([method, !methods.includes(method)])
      if (status === 405) expect(headers.get('allow')).toBe(methods.join(', '))
    }
    expect(format).toBe(formatOfPath(path) === 'anthropic' ? 'Anthropic' : 'OpenAI')
  })
})

describe('headers', () => {
  const source = read('gateway/upstream/upstream-headers.ts')
  const [passed, set, back] = headerTables()
  const names = [...source.matchAll(/'([a-z][a-z0-9-]+)'/g)].map(([, name = '']) => name)
  const sent = Object.fromEntries(
    [...names, ...passed.map(onlyName), 'x-codex-anything', 'user-agent', 'cookie'].map((name) => [name, 'x']),
  )
  const upstream = (isAnthropic: boolean, credential?: string): Set<string> => {
    const flat = upstreamHeaders({ own: ownHeaders({}), sent, forwarded: forwardedHeaders(), isAnthropic, requestId: 'req_1', credential })
    return new Set(flat.filter((_, i) => i % 2 === 0).map((name) => (name.startsWith('x-codex-') ? 'x-codex-*' : name)))
  }

  test('exactly the headers that the page names reach a model server', () => {
    const nativeOnly = passed.filter((row) => row['note']?.includes('Native')).map(onlyName)
    const fixed = set.map(onlyName)
    expect(upstream(true, 'token')).toEqual(new Set([...passed.map(onlyName), ...fixed]))
    expect(upstream(false)).toEqual(
      new Set([...passed.map(onlyName), ...fixed].filter((name) => !nativeOnly.includes(name) && name !== 'authorization')),
    )
  })

  test('exactly the headers that the page names come back from a model server', () => {
    const asked: string[] = []
    const answer = new Proxy({}, { get: (_, name) => (asked.push(String(name)), 'x') })
    expect(
      returnedHeaders(answer, 'x')
        .filter((text) => text !== 'x' && text !== 'content-type')
        .toSorted(),
    ).toEqual(back.map(onlyName).toSorted())
    expect(asked.toSorted()).toEqual(back.map(onlyName).toSorted())
  })

  test('exactly the headers that the page names cannot be passed on by any setting', () => {
    const [start, words] = [page.indexOf('but none of these'), page.indexOf('Nor does a header')]
    const listed = codeSpans(page.slice(start, words))
    expect(listed.toSorted()).toEqual(NEVER_FORWARDED.flatMap(([, names]) => names).toSorted())
    const listedWords = codeSpans(page.slice(words, page.indexOf('Underscores and dots', words)))
    expect(listedWords.toSorted()).toEqual(NEVER_FORWARDED_WORDS.toSorted())
    for (const name of [...listed.map((one) => one.replace('*', 'x')), ...listedWords.map((word) => `x-${word}-y`)])
      expect(() => forwardedHeaders([name]), name).toThrow(RangeError)
  })

  function onlyName(row: Readonly<Record<string, string>>): string {
    return plain(row['header'])
  }

  function headerTables() {
    const starts = ['Passed on to the model server', 'Set by the gateway', "Of the model server's headers"].map((text) =>
      page.indexOf(text),
    )
    const part = (i: number) => tableOf(page.slice(starts[i], page.indexOf('\n\n', page.indexOf('| header', starts[i]))), 'header').rows
    return [part(0), part(1), part(2)] as const
  }
})

describe('test ids', () => {
  const IDS_OF_A_TITLE = /['"`]((?:[ESLTC]\d+ )+)/g
  const used = new Map(
    ['gateway', 'operator', 'standalone', 'test'].flatMap(testFiles).flatMap((file) => idsIn(file).map((id) => [id, file])),
  )
  const promises = new Map(tableOf(read('test/README.md'), 'id').rows.map((row) => [row['id'] ?? '', row['promise'] ?? '']))

  test('every id in the name of a test is explained', () => {
    expect([...used].filter(([id]) => !promises.has(id))).toEqual([])
  })

  test('every id that is explained has a test', () => {
    expect([...promises.keys()].filter((id) => !used.has(id))).toEqual([])
    for (const [id, promise] of promises) expect(promise, id).toMatch(/^.{20,}\.$/)
  })

  function testFiles(folder: string): string[] {
    const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    return names.filter((name) => name.endsWith('.test.ts')).map((name) => join(folder, name))
  }

  function idsIn(file: string): string[] {
    const titles = [...read(file).matchAll(IDS_OF_A_TITLE)]
    return titles.flatMap(([, ids = '']) => ids.trim().split(' '))
  }
})
