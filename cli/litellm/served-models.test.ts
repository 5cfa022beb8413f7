import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { NO_KEYS } from './convert.ts'
import { readConfig } from './read-config.ts'
import { UnreadableFile } from './read-keys.ts'
import { reportOf } from './report.ts'
import { convertModels, type ModelConversion } from './served-models.ts'
import { NO_TEAMS } from './teams.ts'

const SECRET = 'sk-Zm9vYmFyYmF6cXV4MTIzNA'
const convertText = (text: string): ModelConversion => convertModels(readConfig(text), 'apps')
const entry = (params: object, change: object = {}) => ({ model_name: 'm', litellm_params: { model: 'openai/m', ...params }, ...change })
const of = (...list: object[]): ModelConversion => convertText(stringify({ model_list: list }))
const specOf = (params: object, change?: object) => of(entry(params, change)).written[0]?.manifest.spec
const backendOf = (params: object, change?: object) => specOf(params, change)?.backends[0]
const warnings = (params: object, change?: object): string => of(entry(params, change)).written[0]?.warnings.join('\n') ?? ''
const refusal = (params: object, change?: object): string =>
  of(entry(params, change))
    .refused.map(({ place, reason }) => `${place}: ${reason}`)
    .join('\n')
/** Each line has nine times as many values as the one before. */
const nested = (lines: number): string =>
  Array.from({ length: lines }, (_, index) => `a${index + 1}: &a${index + 1} [${Array(9).fill(`*a${index}`).join(', ')}]\n`).join('')
const reported = (models: ModelConversion): string => reportOf(NO_KEYS, 'models.yaml', NO_TEAMS, models)

describe('a model of LiteLLM', () => {
  test('becomes a ServedModel with a backend for each entry of its name', () => {
    const vllm = { model: 'hosted_vllm/Qwen/Qwen3-8B', api_base: 'http://vllm.apps.svc:8000/v1', weight: 3 }
    const { written, refused } = of(
      { model_name: 'qwen/8b', litellm_params: vllm },
      { model_name: 'qwen/8b', litellm_params: { model: 'groq/qwen3-8b', api_key: 'os.environ/GROQ_API_KEY' } },
    )
    expect([written.length, refused]).toEqual([1, []])
    expect(written[0]?.manifest).toEqual({
      apiVersion: 'headgate.dev/v1alpha1',
      kind: 'ServedModel',
      metadata: { name: 'qwen-8b', namespace: 'apps', labels: { 'import.headgate.dev/from': 'litellm' } },
      spec: {
        servedName: 'qwen/8b',
        backends: [
          { name: 'backend-1', service: { name: 'vllm', port: 8000 }, upstreamModel: 'Qwen/Qwen3-8B', weight: 3, engine: 'VLLM' },
          {
            name: 'backend-2',
            url: 'https://api.groq.com/openai',
            upstreamModel: 'qwen3-8b',
            authSecretRef: { name: 'groq-api-key' },
          },
        ],
      },
    })
  })

  test.each([
    ['a URL, without the version that the gateway appends', 'https://a.example/base/v1/', { url: 'https://a.example/base' }],
    ['a Service of the namespace', 'http://vllm.apps.svc.cluster.local:8000/v1', { service: { name: 'vllm', port: 8000 } }],
    ['a Service by its short name', 'http://vllm/v1', { service: { name: 'vllm', port: 80 } }],
    ['a Service of another namespace, by url', 'http://vllm.gpu.svc:8000/v1', { url: 'http://vllm.gpu.svc:8000' }],
  ])('has %s', (_, api_base, expected) => {
    expect(backendOf({ api_base })).toMatchObject(expected)
  })

  test.each([
    ['http://vllm:8000/v1', 'was taken for the Service vllm of namespace apps'],
    ['http://vllm.gpu.svc:8000/v1', 'scope.clusterAddresses'],
    ['http://10.0.0.5:8000/v1', 'scope.clusterAddresses'],
    ['http://localhost:8000/v1', 'an address of this machine'],
    ['https://a.example', 'does not end in /v1'],
  ])('at %s has a decision in the report', (api_base, text) => {
    expect(warnings({ api_base })).toContain(text)
  })

  test.each<[object, object]>([
    [{ model: 'anthropic/claude-sonnet-4-5' }, { authSecretRef: { name: 'anthropic-api-key', header: 'x-api-key' }, messages: 'Native' }],
    [{ model: 'claude-sonnet-4-5' }, { url: 'https://api.anthropic.com', headers: [{ name: 'anthropic-version', value: '2023-06-01' }] }],
    [
      { model: 'azure/my-deployment', api_base: 'https://r.openai.azure.com/', api_key: 'os.environ/AZURE_KEY' },
      { url: 'https://r.openai.azure.com/openai', upstreamModel: 'my-deployment', authSecretRef: { name: 'azure-key', header: 'api-key' } },
    ],
    [
      { model: 'ollama_chat/llama3.3', api_base: 'http://ollama:11434' },
      { engine: 'Ollama', upstreamModel: 'llama3.3' },
    ],
    [
      { model: 'm', custom_llm_provider: 'deepseek' },
      { engine: 'DeepSeek', upstreamModel: undefined },
    ],
    [{ model: 'text-completion-openai/m' }, { routes: ['completions'] }],
  ])('with %j has a backend with %j', (params, expected) => {
    expect(backendOf(params)).toMatchObject(expected)
  })

  test('serves the routes of its mode', () => {
    expect(backendOf({}, { model_info: { mode: 'embedding' } })?.routes).toEqual(['embeddings'])
    expect(refusal({}, { model_info: { mode: 'image_generation' } })).toContain('no route for model_info.mode "image_generation"')
  })

  test('has the prices of a million tokens, without a float between', () => {
    const prices = { input_cost_per_token: 1.5e-7, output_cost_per_token: '0.0000006', cache_read_input_token_cost: '7.5e-08' }
    expect(specOf(prices)?.pricing).toEqual({ inputPerMillion: '0.15', outputPerMillion: '0.60', cachedInputPerMillion: '0.075' })
    expect(specOf({}, { model_info: prices })?.pricing).toMatchObject({ inputPerMillion: '0.15' })
    expect(specOf({ input_cost_per_token: 1e-7 })?.pricing).toBeUndefined()
    expect(warnings({ ...prices, input_cost_per_token: '0.0000000000001' })).toContain('was rounded down')
  })

  test('bounds its answers as LiteLLM knows them, so that calls without max_tokens fit into budgets', () => {
    expect(specOf({}, { model_info: { max_output_tokens: 4096 } })?.maxOutputTokens).toBe(4096)
    expect(specOf({}, { model_info: { max_output_tokens: null } })?.maxOutputTokens).toBeUndefined()
  })

  test.each<[object, string]>([
    [{ model: 'bedrock/x' }, 'model_list entry 1: the import does not know the provider "bedrock"'],
    [{ model: 'my-model' }, 'names no provider'],
    [{ model: 'hosted_vllm/m' }, 'the entry has no api_base'],
    [{ api_base: 'os.environ/VLLM_URL' }, 'api_base is the variable VLLM_URL'],
    [{ api_base: 'http://169.254.169.254/v1' }, 'api_base: it is a link-local address'],
    [{ api_base: 'http://user:pass@a.example/v1' }, 'api_base: it has user info'],
    [{ model: '' }, 'litellm_params.model: not of the form'],
    [{ litellm_credential_name: 'absent' }, 'is not in credential_list'],
  ])('with %j is not written, and named', (params, reason) => {
    expect(of(entry(params)).written).toEqual([])
    expect(refusal(params)).toContain(reason)
  })

  test.each(['*', 'openai/*', 'a b'])('of the name %j is not written, and named', (model_name) => {
    expect(refusal({}, { model_name })).toContain('model_name is a pattern')
  })
})

describe('a credential', () => {
  test.each<[object, string | undefined]>([
    [{ api_key: 'os.environ/OPENAI_KEY_2' }, 'openai-key-2'],
    [{}, 'openai-api-key'],
    [{ api_base: 'https://a.example/v1' }, undefined],
    [{ api_base: 'https://a.example/v1', api_key: 'none' }, undefined],
    [{ api_key: SECRET }, 'litellm-m-1'],
  ])('of %j is in the Secret %s', (params, secret) => {
    expect(backendOf(params)?.authSecretRef?.name).toBe(secret)
  })

  test('comes from the credential that the entry names', () => {
    const models = convertText(
      stringify({
        model_list: [entry({ litellm_credential_name: 'shared' })],
        credential_list: [
          { credential_name: 'shared', credential_values: { api_key: 'os.environ/SHARED', api_base: 'https://a.example/v1' } },
        ],
      }),
    )
    expect(models.written[0]?.manifest.spec.backends[0]).toMatchObject({ url: 'https://a.example', authSecretRef: { name: 'shared' } })
  })

  test('in the file is in no output, and the report says that the file holds it', () => {
    const models = of(entry({ api_key: SECRET }), entry({ api_key: SECRET, model: 'bedrock/x', aws_secret_access_key: SECRET }))
    expect(JSON.stringify(models) + reported(models)).not.toContain(SECRET)
    expect(reported(models)).toContain('  ! THE FILE HOLDS THE CREDENTIAL')
    expect(() => convertText(`model_list: [\n  api_key: "${SECRET}`)).toThrow(UnreadableFile)
    expect(() => convertText(`model_list: [\n  api_key: "${SECRET}`)).not.toThrow(SECRET)
  })

  test('has a command in the report, with the hosts that may get it', () => {
    const models = of(
      entry({ api_key: 'os.environ/KEY' }),
      entry({ api_key: 'os.environ/KEY', api_base: 'http://a.example:8080/v1' }),
      entry({ api_key: 'os.environ/KEY', api_base: 'http://vllm.apps.svc:8000/v1' }),
    )
    const report = reported(models)
    expect(report).toContain('printf %s "$KEY" | kubectl -n apps create secret generic key --from-file=token=/dev/stdin')
    expect(report).toContain('kubectl -n apps label secret key headgate.dev/upstream-auth=true')
    expect(report).toContain("annotate secret key headgate.dev/upstream-hosts='api.openai.com, http://a.example:8080'")
    expect(report.match(/create secret/g)).toHaveLength(1)
  })
})

describe('the file with the models', () => {
  test('may be the answer of GET /model/info, which has no credentials', () => {
    const models = convertText(
      JSON.stringify({ data: [{ ...entry({}), model_info: { id: 'x', mode: null, input_cost_per_token: 1.5e-7 } }] }),
    )
    expect(models.written).toHaveLength(1)
    expect(models.notes.join()).toContain('! The answer of LiteLLM has no credentials')
  })

  test('may have anchors and merge keys', () => {
    const text = 'd: &d { model: openai/m, api_base: https://a.example/v1 }\nmodel_list: [{ model_name: m, litellm_params: { <<: *d } }]\n'
    expect(convertText(text).written[0]?.manifest.spec.backends[0]).toMatchObject({ url: 'https://a.example' })
  })

  test('may use an anchor for hundreds of entries', () => {
    const entries = Array.from({ length: 300 }, (_, index) => `  - { model_name: m${index}, litellm_params: *d }\n`)
    expect(convertText(`d: &d { model: openai/m }\nmodel_list:\n${entries.join('')}`).written).toHaveLength(300)
  })

  test('gives models their aliases, and names what has no counterpart', () => {
    const aliases = { mini: 'm', hidden: { model: 'm', hidden: true }, 'no name': 'm' }
    const router = { model_group_alias: aliases, fallbacks: [{ m: ['other'] }], num_retries: 2 }
    const models = convertText(
      stringify({ model_list: [entry({ rpm: 5 })], router_settings: router, general_settings: { a: 1 }, include: ['x'] }),
    )
    expect(models.written[0]?.manifest.spec.aliases).toEqual(['mini', 'hidden'])
    const report = reported(models)
    for (const part of [
      '! the alias "no name"',
      '! fallbacks:',
      '! include:',
      'config: general_settings',
      'num_retries',
      'litellm_params: rpm',
    ])
      expect(report).toContain(part)
  })

  test.each<[string, RegExp]>([
    ['', /--config/],
    ['model_list: []', /--config has no model_list/],
    ['model_list: text', /--config: model_list: not of the form/],
    [`a0: &a0 [x]\n${nested(9)}model_list: [*a9]`, /too many aliases/],
    ['a: *b', /--config is not YAML/],
    ['{', /--config is not YAML \(line \d+\)/],
  ])('with %j ends the import', (text, why) => {
    expect(() => convertText(text)).toThrow(UnreadableFile)
    expect(() => convertText(text)).toThrow(why)
  })
})
