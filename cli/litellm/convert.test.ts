import { describe, expect, test } from 'vitest'
import { sha256 } from '../../test/support/hash-keys.ts'
import { type Conversion, convert, type ConvertOptions } from './convert.ts'
import { readKeys } from './read-keys.ts'
import { reportOf } from './report.ts'
import { NO_TEAMS } from './teams.ts'

const VALUE = 'sk-Zm9vYmFyYmF6cXV4MTIzNA'
const NOW = Date.UTC(2026, 5, 1)
const OPTIONS: ConvertOptions = { namespace: 'apps', subtractSpend: false, teamModels: new Map(), teams: NO_TEAMS, nowMs: NOW }
const row = (change: object = {}) => ({ token: sha256(VALUE), key_name: 'sk-...MjM0', key_alias: 'bot', models: ['llama'], ...change })

function of(change: object = {}, options: Partial<ConvertOptions> = {}): Conversion {
  return convert(readKeys(JSON.stringify({ keys: [row(change)] })), { ...OPTIONS, ...options })
}
const specOf = (change: object, options?: Partial<ConvertOptions>) => of(change, options).written[0]?.manifest.spec
const warnings = (change: object, options?: Partial<ConvertOptions>): string => of(change, options).written[0]?.warnings.join('\n') ?? ''
const refusal = (change: object): string =>
  of(change)
    .refused.map(({ reason, remedy }) => `${reason} | ${remedy}`)
    .join('\n')

describe('a key of LiteLLM', () => {
  test('becomes an ApiKey with the hash that LiteLLM stores', () => {
    const [written] = of().written
    expect(written?.manifest).toEqual({
      apiVersion: 'headgate.dev/v1alpha1',
      kind: 'ApiKey',
      metadata: {
        name: 'bot',
        namespace: 'apps',
        labels: { 'import.headgate.dev/from': 'litellm' },
        annotations: { 'import.headgate.dev/key-alias': 'bot' },
      },
      spec: { displayName: 'bot', models: ['llama'], source: { type: 'Hash', hash: { sha256: sha256(VALUE), hint: 'sk-...MjM0' } } },
    })
    expect([written?.warnings, written?.notes]).toEqual([[], []])
  })

  test('keeps its limits', () => {
    expect(specOf({ rpm_limit: 60, tpm_limit: 40000, max_parallel_requests: 8 })?.limits).toEqual({
      requestsPerMinute: 60,
      tokensPerMinute: 40_000,
      maxConcurrentRequests: 8,
    })
    expect(specOf({ rpm_limit: 2e9 })?.limits).toEqual({ requestsPerMinute: 1_000_000_000 })
  })

  test.each([{ rpm_limit: 'many' }, { tpm_limit: 1.5 }, { max_parallel_requests: -1 }, { max_budget: 'much' }])(
    'with a limit that cannot be read is not written, since it would have none: %j',
    (change) => {
      expect(refusal(change)).toMatch(new RegExp(`^${Object.keys(change)[0] ?? ''} is not a number`))
    },
  )

  test('with a limit of 0, which admits no request, is suspended and not unlimited', () => {
    expect(specOf({ rpm_limit: 0 })).toMatchObject({ state: 'Suspended' })
    expect(warnings({ tpm_limit: 0 })).toContain('tpm_limit is 0')
  })

  test('that is blocked is Suspended', () => {
    expect(specOf({ blocked: true })).toMatchObject({ state: 'Suspended' })
    expect(warnings({ blocked: true })).toContain('blocked in LiteLLM')
  })

  test.each([
    ['2027-01-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['2027-01-01T00:00:00.123456+00:00', '2027-01-01T00:00:00Z'],
    ['2027-01-01T02:30:00+02:30', '2027-01-01T00:00:00Z'],
    ['2027-01-01 00:00:00.5', '2027-01-01T00:00:00Z'],
    ['2027-01-01 02:00:00+02', '2027-01-01T00:00:00Z'],
  ])('that expires %s keeps its expiry', (expires, expirationTime) => {
    expect(specOf({ expires })).toMatchObject({ expirationTime })
  })

  test('that has expired, or has an unreadable expiry, is not written, and named', () => {
    expect(refusal({ expires: '2026-05-31T00:00:00Z' })).toMatch(/^the key expired at 2026-05-31/)
    expect(refusal({ expires: 'tomorrow' })).toMatch(/^expires is not a time/)
  })
})

describe('models', () => {
  test.each([[[]], [['all-proxy-models']]])('%j means every model, and the report warns of it', (models) => {
    expect(specOf({ models })?.models).toEqual(['*'])
    expect(warnings({ models })).toContain('EVERY MODEL')
  })

  test.each([
    { models: [], team_id: 'blue' },
    { models: ['all-team-models'], team_id: 'blue' },
  ])('of a team are not guessed: %j', (change) => {
    expect(refusal(change)).toContain("add --team-models 'blue=model-a,model-b'")
    const teamModels = new Map([['blue', ['llama', 'qwen-*']]])
    expect(specOf(change, { teamModels })?.models).toEqual(['llama', 'qwen-*'])
  })

  test('of a key without models do not become all', () => {
    expect(refusal({ models: ['no-default-models'] })).toContain('may call nothing')
  })

  test('that an ApiKey cannot name are omitted and reported; a key with none left is not written', () => {
    expect(specOf({ models: ['llama', 'gpt-*-mini', 'openai/*'] })?.models).toEqual(['llama', 'openai/*'])
    expect(warnings({ models: ['llama', 'gpt-*-mini'] })).toContain('"gpt-*-mini"')
    expect(refusal({ models: ['gpt-*-mini'] })).toContain('no entry of models')
    expect(refusal({ models: Array.from({ length: 257 }, (_, index) => `m-${index}`) })).toContain('257 entries')
  })
})

describe('budgets', () => {
  test.each([
    ['1d', 'Day'],
    ['24h', 'Day'],
    ['daily', 'Day'],
    ['7d', 'Week'],
    ['30d', 'Month'],
    ['1mo', 'Month'],
    [undefined, 'Lifetime'],
  ])('of %s reset as in LiteLLM: %s', (budget_duration, window) => {
    expect(specOf({ max_budget: 12.5, budget_duration })?.budgets).toMatchObject([{ amount: '12.50', unit: 'Currency', window }])
    expect(warnings({ max_budget: 12.5, budget_duration })).toBe('')
  })

  test.each([
    ['1h', 'Day'],
    ['10d', 'Month'],
    ['28d', 'Month'],
    ['31d', 'Lifetime'],
    ['2mo', 'Lifetime'],
    ['often', 'Lifetime'],
  ])('of %s, which has no window, get the next longer one (%s): never more money than before', (budget_duration, window) => {
    expect(specOf({ max_budget: 5, budget_duration })?.budgets).toMatchObject([{ window }])
    expect(warnings({ max_budget: 5, budget_duration })).toContain(budget_duration)
  })

  test('start at zero, unless the user asks for the rest of a budget without an end', () => {
    expect(warnings({ max_budget: 100, spend: 61.03 })).toContain('61.03 were spent')
    expect(specOf({ max_budget: 100, spend: 61.03 }, { subtractSpend: true })?.budgets).toMatchObject([{ amount: '38.97' }])
    expect(specOf({ max_budget: 1, spend: 3 }, { subtractSpend: true })).toMatchObject({ state: 'Suspended', budgets: undefined })
    expect(specOf({ max_budget: 0.3, spend: 0.1 }, { subtractSpend: true })?.budgets).toMatchObject([{ amount: '0.20' }])
    expect(specOf({ max_budget: 100, budget_duration: '30d', spend: 61 }, { subtractSpend: true })?.budgets).toMatchObject([
      { amount: '100.00' },
    ])
  })
})

describe('names', () => {
  const named = (...aliases: (string | null)[]): string[] => {
    const keys = aliases.map((key_alias, index) => row({ key_alias, token: sha256(`sk-${index}`) }))
    return convert(readKeys(JSON.stringify(keys)), OPTIONS).written.map(({ manifest }) => manifest.metadata.name)
  }

  test('come from the alias, in letters that Kubernetes accepts', () => {
    expect(named('Checkout Bot', 'Ünïcode/Küche', 'support@blue')).toEqual(['checkout-bot', 'u-ni-code-ku-che', 'support-blue'])
  })

  test('without an alias come from the hash', () => {
    expect(named(null, '✨')).toEqual([`key-${sha256('sk-0').slice(0, 8)}`, `key-${sha256('sk-1').slice(0, 8)}`])
  })

  test('that are equal get a part of the hash, whatever the order of the file', () => {
    expect(named('Bot', 'bot')).toEqual([`bot-${sha256('sk-0').slice(0, 8)}`, `bot-${sha256('sk-1').slice(0, 8)}`])
  })

  test('are valid however long the alias is', () => {
    expect(named('x'.repeat(500))[0]).toHaveLength(50)
  })
})

describe('the value of a key', () => {
  test('in a file written by hand is hashed in memory, reported with a warning, and shown nowhere', () => {
    const conversion = of({ token: VALUE, key_name: VALUE })
    expect(conversion.written[0]?.manifest.spec.source?.hash).toEqual({ sha256: sha256(VALUE), hint: `sk-...${VALUE.slice(-4)}` })
    expect(conversion.written[0]?.warnings.join()).toContain('THE FILE HOLDS THE VALUE')
    expect(JSON.stringify(conversion) + reportOf(conversion, 'x')).not.toContain(VALUE)
  })

  test.each(['key_alias', 'team_id', 'user_id'])('as %s is omitted everywhere', (field) => {
    const conversion = of({ [field]: VALUE })
    expect(conversion.written).toHaveLength(1)
    expect(JSON.stringify(conversion) + reportOf(conversion, 'x')).not.toContain(VALUE)
  })

  test('is not in the message about a token that is neither', () => {
    const conversion = of({ token: 'pk-not-a-key-of-litellm' })
    expect(conversion.refused[0]?.reason).toContain('not a SHA-256')
    expect(JSON.stringify(conversion)).not.toContain('pk-not')
  })

  test('is in a hint only in the short form of LiteLLM', () => {
    expect(specOf({ key_name: 'sk-whole-value-of-old-versions' })?.source?.hash).toEqual({ sha256: sha256(VALUE) })
  })
})

describe('the report', () => {
  test('names fields without a counterpart, once per key, and never their content', () => {
    const change = {
      team_id: 'blue',
      aliases: { 'gpt-4o': 'llama' },
      metadata: { guardrails: ['pii'], logging: [{ callback_vars: { k: 'pw-1' } }] },
    }
    const conversion = of(change)
    const text = reportOf(conversion, 'keys.yaml')
    for (const part of ['- aliases:', '! guardrails:', '- logging:', '! team_id:']) expect(text).toContain(part)
    expect(text).not.toMatch(/pw-1|gpt-4o|pii/)
  })

  test('omits empty fields, and names unknown ones', () => {
    const nothing = { aliases: {}, config: {}, permissions: null, allowed_routes: [], auto_rotate: false, rotation_count: 0 }
    expect(of(nothing).written[0]?.notes).toEqual([])
    expect(reportOf(of({ ...nothing, brand_new: { a: 1 } }), 'x')).toContain('does not know and has not imported: brand_new.')
    expect(reportOf(of({ metadata: { cost_center: 7, empty: '' } }), 'x')).toContain('has not imported: metadata.cost_center.')
  })

  test.each(['team_id', 'user_id', 'organization_id', 'project_id', 'agent_id'])(
    'marks a cap that a key has only through its %s as a decision',
    (field) => {
      expect(reportOf(of({ [field]: 'blue' }), 'x')).toMatch(new RegExp(`^ {2}! ${field}: limits and budgets`, 'm'))
    },
  )

  test.each([
    [
      'a temporary increase of the budget',
      { metadata: { temp_budget_increase: 100, temp_budget_expiry: '2026-07-01' } },
      'temp_budget_increase',
    ],
    ['parameters that requests must have', { metadata: { enforced_params: ['user'] } }, 'enforced_params'],
    ['a soft budget', { soft_budget: 5 }, 'soft_budget'],
    ['a budget of zero', { max_budget: 0 }, 'max_budget is 0'],
  ])('marks %s as a decision', (_, change, text) => {
    expect(reportOf(of(change), 'x')).toContain(`  ! ${text}`)
  })

  test('suspends a key whose budget is zero, as one whose limit is zero', () => {
    expect(specOf({ max_budget: 0 })).toMatchObject({ state: 'Suspended', budgets: undefined })
  })

  test('names the models that the keys name, among which may be access groups, and the namespace', () => {
    const report = reportOf(of({ models: ['qwen', 'beta-group'] }), 'x')
    expect(report).toContain('The keys name these models: beta-group, qwen.\n! Each needs a ServedModel')
    expect(report).toContain('in namespace apps')
  })

  test('has no characters that steer a terminal, wherever the file has them', () => {
    const evil = 'a\u001b[2J\u009b1m\u202eb\nforged: 1 written'
    const report = reportOf(of({ key_alias: evil, [evil]: 1, metadata: { [evil]: 1 }, models: ['llama', evil], team_id: evil }), 'x')
    // oxlint-disable-next-line no-control-regex -- finding them is the point
    expect(report).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]|^forged/m)
    expect(report).toContain('a?[2J?1m?b')
    expect(JSON.stringify(of({ key_alias: evil }).written[0]?.manifest)).not.toMatch(/\u009b|\u202e/)
  })

  test.each([
    ['a value that people choose', { token: sha256('sk-1234') }],
    ['the name of the key', { token: sha256('sk-Checkout'), key_alias: 'Checkout' }],
    ['a short value in the file', { token: 'sk-x7Q' }],
  ])('marks %s as easy to guess', (_, change) => {
    expect(reportOf(of(change), 'x')).toContain('  ! EASY TO GUESS')
    expect(reportOf(of(), 'x')).not.toContain('EASY TO GUESS')
  })

  test('says that budgets in money need prices, if there are such budgets', () => {
    expect(reportOf(of({ max_budget: 5 }), 'x')).toContain('pricing')
    expect(reportOf(of(), 'x')).not.toContain('pricing')
  })

  test('contains the number of keys, and the keys that were not written with the reasons', () => {
    const keys = [row(), row(), row({ token: 'x', key_alias: 'broken' })]
    const text = reportOf(convert(readKeys(JSON.stringify(keys)), OPTIONS), 'keys.yaml')
    expect(text).toContain('3 keys read: 1 written to keys.yaml, 2 not written.')
    expect(text).toMatch(/entry 2 \(alias "bot"\): an entry before it has the same hash/)
    expect(text).toMatch(/entry 3 \(alias "broken"\): token is not a SHA-256/)
  })
})
