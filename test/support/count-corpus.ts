/** 500 requests of messages whose tokens are counted: prose and code of this repository, and CJK, base64 and schemas of tools from a seed. */
import type Anthropic from '@anthropic-ai/sdk'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SeededRandom } from './seeded-random.ts'

const ROOT = join(import.meta.dirname, '../..')
const OF_EACH_KIND = 100
const PROSE_FOLDERS = ['docs', 'docs/decisions', 'gateway', 'operator', 'test', 'charts/headgate', '.']
const CODE_FOLDERS = [
  ...['gateway/upstream', 'gateway/dialects', 'gateway/limits', 'operator/kinds', 'operator/shards', 'lib/policy', 'dashboard/web'],
  ...['test/parts', 'test/clients/python', 'charts/headgate/templates', 'examples/standalone'],
]
const CODE = /\.(?:ts|tsx|sh|py|yaml|css)$/

export const CORPUS_KINDS = ['prose', 'code', 'CJK', 'base64', 'tools'] as const
type Kind = (typeof CORPUS_KINDS)[number]

/** A request whose prompt is counted. */
export interface CountedRequest {
  readonly kind: Kind
  readonly body: Omit<Anthropic.MessageCountTokensParams, 'model'>
}

const CHINESE = ['我们', '今天', '模型', '需要', '检查', '服务器', '为什么', '没有', '返回', '正确', '结果', '的', '了', '在', '数据库', '连接', '超时', '请', '把', '这个', '函数', '改成', '异步', '，', '。', '然后', '运行', '测试', '用户', '密钥', '已经', '过期'] // prettier-ignore
const JAPANESE = ['今日', 'の', '会議', 'は', '午後', '三時', 'から', 'です', '。', 'サーバー', 'が', '応答', 'しません', '、', '原因', 'を', '調べて', 'ください', 'テスト', '関数', '変更', 'して', 'ファイル', 'に', '保存', 'する', '必要', 'ありました'] // prettier-ignore
const KOREAN = ['오늘', '회의는', '오후', '세', '시에', '시작합니다', '서버가', '응답하지', '않습니다', '원인을', '확인해', '주세요', '모든', '인간은', '자유롭고', '평등하다', '데이터베이스', '연결이', '끊어졌습니다', '그리고', '사용자', '키가', '만료되었습니다', '함수를', '수정하고', '테스트를', '실행하세요'] // prettier-ignore
const NAMES = ['path', 'query', 'limit', 'offset', 'recursive', 'encoding', 'command', 'timeout_ms', 'old_string', 'new_string', 'branch', 'filter', 'is_case_sensitive', 'maxResults', 'outputFormat', 'labels', 'assignee', 'due_date'] // prettier-ignore
const VERBS = ['read', 'write', 'search', 'list', 'delete', 'run', 'create', 'update'] as const
const THINGS = ['file', 'issue', 'directory', 'shell_command', 'pull_request', 'notebook', 'web_page', 'database_row'] as const
const SENTENCES = [
  'Absolute path of the file, below the working directory.',
  'Maximum number of results; all others are left out without a word.',
  'A regular expression in the syntax of ripgrep, e.g. "log.*Error".',
  'Use this only if the user has asked for it, and never to read secrets.',
  'Milliseconds after which the command is stopped (at most 600000).',
  'One of the labels of the repository.',
] as const

/** The same requests for the same sources. */
export function countCorpus(): readonly CountedRequest[] {
  const random = new SeededRandom(31)
  const [prose, code] = [slices(PROSE_FOLDERS, /\.md$/, paragraphsOnly, random), slices(CODE_FOLDERS, CODE, (text) => text, random)]
  const MAKERS: Readonly<Record<Kind, (index: number) => CountedRequest['body']>> = {
    prose: (index) => conversation(at(prose, index), random),
    code: (index) => (index % 2 === 0 ? conversation(at(code, index), random) : toolTurns(at(code, index), random)),
    CJK: (index) => conversation(cjkText(index, random), random),
    base64: (index) => conversation(base64Text(index, random), random),
    tools: () => withTools(random),
  }
  return CORPUS_KINDS.flatMap((kind) => Array.from({ length: OF_EACH_KIND }, (_, index) => ({ kind, body: MAKERS[kind](index) })))
}

/** Parts of files, as many as a kind needs: one of each file in turn. */
function slices(folders: readonly string[], name: RegExp, clean: (text: string) => string, random: SeededRandom): string[] {
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((file) => name.test(file))
      .toSorted()
      .map((file) => clean(readFileSync(join(ROOT, folder, file), 'utf8'))),
  )
  const long = files.filter((text) => text.length > 1_000)
  return Array.from({ length: OF_EACH_KIND }, (_, index) => {
    const text = at(long, index)
    const length = 600 + random.below(3_400)
    const from = random.below(Math.max(1, text.length - length))
    return text.slice(from, from + length)
  })
}

/** Without tables: their rows of dashes are not prose. */
const paragraphsOnly = (text: string): string =>
  text
    .split('\n')
    .filter((line) => !line.startsWith('|'))
    .join('\n')

function at<T>(list: readonly T[], index: number): T {
  const one = list[index % list.length]
  if (one === undefined) throw new Error('the corpus has no sources')
  return one
}

const user = (content: Anthropic.MessageParam['content']): Anthropic.MessageParam => ({ role: 'user', content })
const SYSTEM = 'You are a careful engineer. Answer in the language of the question, and say what you have not checked.'

/** A text as one turn, as several, or as the system text. */
function conversation(text: string, random: SeededRandom): CountedRequest['body'] {
  const half = Math.floor(text.length / 2)
  const [first, second] = [text.slice(0, half), text.slice(half)]
  return random.pick<CountedRequest['body']>([
    { messages: [user(text)] },
    { system: SYSTEM, messages: [user(first), { role: 'assistant', content: second }, user('And now?')] },
    { system: [{ type: 'text', text: first }], messages: [user([{ type: 'text', text: second }])] },
  ])
}

/** A text that a tool has read, and one that it writes. */
function toolTurns(text: string, random: SeededRandom): CountedRequest['body'] {
  const half = Math.floor(text.length / 2)
  const call = {
    type: 'tool_use',
    id: 'toolu_1',
    name: 'write_file',
    input: { path: 'src/main.ts', content: text.slice(0, half) },
  } as const
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: text.slice(half) } as const
  return {
    system: SYSTEM,
    tools: [toolOf(random), toolOf(random)],
    messages: [user('Go on.'), { role: 'assistant', content: [call] }, user([result])],
  }
}

const withTools = (random: SeededRandom): CountedRequest['body'] => ({
  ...(random.chance(0.5) && { system: SYSTEM }),
  tools: Array.from({ length: 1 + random.below(12) }, () => toolOf(random)),
  messages: [user('Which files are the largest?')],
})

function toolOf(random: SeededRandom): Anthropic.Tool {
  const name = `${random.pick(VERBS)}_${random.pick(THINGS)}`
  const properties = Object.fromEntries(
    Array.from({ length: 1 + random.below(7) }, () => [at(NAMES, random.below(99)), property(random, 0)]),
  )
  return {
    name,
    description: `${name.replaceAll('_', ' ')}. ${Array.from({ length: random.below(8) }, () => random.pick(SENTENCES)).join(' ')}`,
    input_schema: { type: 'object', properties, required: Object.keys(properties).slice(0, 2), additionalProperties: false },
  }
}

function property(random: SeededRandom, depth: number): object {
  const description = random.pick(SENTENCES)
  if (depth < 2 && random.chance(0.15)) {
    const inner = Object.fromEntries(
      Array.from({ length: 1 + random.below(4) }, () => [at(NAMES, random.below(99)), property(random, depth + 1)]),
    )
    return { type: 'array', items: { type: 'object', properties: inner }, minItems: 1 }
  }
  return random.pick<object>([
    { type: 'string', description },
    { type: 'integer', minimum: 1, maximum: 10 ** random.below(6), description },
    { type: 'boolean', default: random.chance(0.5), description },
    { type: 'string', enum: Array.from({ length: 2 + random.below(5) }, () => at(NAMES, random.below(99))) },
  ])
}

function cjkText(index: number, random: SeededRandom): string {
  const [words, gap] = at(
    [
      [CHINESE, ''],
      [JAPANESE, ''],
      [KOREAN, ' '],
    ] as const,
    index,
  )
  return Array.from({ length: 60 + random.below(200) }, () => at(words, random.below(999))).join(gap)
}

/** Plain, for URLs, in lines of 76 as a certificate, or in a field of JSON. */
function base64Text(index: number, random: SeededRandom): string {
  const bytes = Buffer.from(Array.from({ length: 300 + random.below(2_000) }, () => random.below(256)))
  const text = bytes.toString(index % 4 === 1 ? 'base64url' : 'base64')
  if (index % 4 === 2) return `-----BEGIN CERTIFICATE-----\n${text.replaceAll(/.{76}/g, '$&\n')}\n-----END CERTIFICATE-----`
  return index % 4 === 3 ? JSON.stringify({ name: 'image.png', bytes: bytes.length, content: text }, null, 2) : text
}
