import { describe, expect, test } from 'vitest'
import { SeededRandom } from '../../test/support/seeded-random.ts'
import { promptSize } from '../dialects/prompt-size.ts'
import { believed, countedPrompt, declaredOutput, estimateTokens, LearnedOutput, LearnedRatio, type EstimateSource } from './estimate.ts'

const NO_CAP = { maxOutputTokens: undefined, choices: 1 }

/** An estimate of a prompt of 100 tokens by a gateway that has learned nothing. */
function estimate(changes: Partial<EstimateSource> = {}): ReturnType<typeof estimateTokens> {
  const size = { tokens: 100, mediaTokens: 0, maxTokens: 500 }
  return estimateTokens({ asked: NO_CAP, size, bounds: {}, ratio: { ratio: 1 }, learned: { p90: 1_024 }, ...changes })
}

describe('the output that a request may take', () => {
  test.each<[string, Partial<EstimateSource>, number]>([
    ['#36143 the bound of the model without a cap', { bounds: { maxOutputTokens: 8_000, contextTokens: 32_000 } }, 8_000],
    [
      'W7 the rest of its context without such a bound, after the shortest prompt',
      { bounds: { maxOutputTokens: null, contextTokens: 32_000 } },
      31_969,
    ],
    ['1 where the prompt fills its context', { bounds: { contextTokens: 30 } }, 1],
    ['4,096 where nothing is known', { bounds: { contextTokens: null } }, 4_096],
    ['#28805 a small cap', { asked: { maxOutputTokens: 50, choices: 1 }, bounds: { maxOutputTokens: 8_000 } }, 50],
    ['a cap beyond the bound of the model', { asked: { maxOutputTokens: 9_000, choices: 1 }, bounds: { maxOutputTokens: 8_000 } }, 9_000],
    ['a cap for each answer', { asked: { maxOutputTokens: 50, choices: 4 } }, 200],
    [
      'the bound of the model for each answer',
      { asked: { maxOutputTokens: undefined, choices: 4 }, bounds: { maxOutputTokens: 8_000 } },
      32_000,
    ],
    ['a number that can be added exactly, whatever is declared', { asked: { maxOutputTokens: 1e300, choices: 1e9 } }, 1e9],
  ])('is %s', (_what, changes, outputMax) => {
    expect(estimate(changes).outputMax).toBe(outputMax)
  })

  test('is declared only by a cap', () => {
    expect([declaredOutput(NO_CAP), declaredOutput({ maxOutputTokens: 7, choices: 2 })]).toEqual([undefined, 14])
  })

  test('is expected to equal earlier answers, up to the bound of this request', () => {
    expect(estimate({ learned: { p90: 300 } }).output).toBe(300)
    expect(estimate({ learned: { p90: 300 }, asked: { maxOutputTokens: 50, choices: 1 } }).output).toBe(50)
    expect(estimate({ learned: { p90: 300 }, asked: { maxOutputTokens: undefined, choices: 4 } }).output).toBe(1_200)
  })
})

describe('the input that a request may take', () => {
  test('is the size of its prompt corrected by the experience with the model, at most the number of its bytes', () => {
    expect(estimate({ ratio: { ratio: 1.301 } })).toMatchObject({ input: 131, inputMax: 500 })
    expect(estimate({ ratio: { ratio: 4 }, size: { tokens: 200, mediaTokens: 0, maxTokens: 500 } })).toMatchObject({
      input: 500,
      inputMax: 500,
    })
  })
})

describe('W4 L4 the usage that a server reports is believed', () => {
  const used = (inputTokens: number, outputTokens: number) => ({ inputTokens, outputTokens, cachedInputTokens: 0, isEstimated: false })

  test.each<[string, Partial<EstimateSource>, number]>([
    ['up to four times what the call may use', { asked: { maxOutputTokens: 50, choices: 2 } }, 4 * (500 + 100)],
    ['up to four times the bound of the model', { bounds: { maxOutputTokens: 8_000 } }, 4 * (500 + 8_000)],
    ['up to a million tokens of a call without any bound', {}, 1_000_000],
  ])('%s', (_what, changes, most) => {
    const known = estimate(changes)
    const honest = used(400, most - 400)
    expect(believed(honest, known)).toBe(honest)
    for (const absurd of [used(400, most), used(400, 2 ** 32 - 1), used(400, 5e15)])
      expect(believed(absurd, known)).toEqual({ ...honest, isEstimated: true })
    expect(believed(used(5e15, 5e15), known)).toEqual({ ...used(most, 0), isEstimated: true })
  })
})

describe('the experience with a model', () => {
  function afterAll(prompts: readonly (readonly [tokens: number, actual: number])[]): number {
    const learned = new LearnedRatio()
    for (const [tokens, actual] of prompts) learned.learn({ tokens }, actual)
    return learned.ratio
  }
  const repeat = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one)

  test('T29 begins at 1 and brings estimates near the truth within 50 answers', () => {
    expect(afterAll([])).toBe(1)
    for (const truth of [0.6, 1.3, 3]) expect(afterAll(repeat(50, [2_000, 2_000 * truth])) / truth).toBeCloseTo(1, 1)
  })

  test('never leaves 0.5 to 4, whatever a backend reports', () => {
    for (const actual of [0, 1, 1e15]) {
      const ratio = afterAll(repeat(500, [1_000, actual]))
      expect(ratio).toBeGreaterThanOrEqual(0.5)
      expect(ratio).toBeLessThanOrEqual(4)
    }
  })

  test('is not distorted by the template around short prompts', () => {
    const mixed = repeat(60, [
      [8, 40],
      [20_000, 20_000],
    ] as const).flat()
    expect(afterAll(mixed)).toBeCloseTo(1, 2)
  })
})

describe('the experience with the answers that a key gets', () => {
  const SEED = Number(process.env.ESTIMATE_SEED ?? 7)

  function afterAll(lengths: Iterable<number>): number {
    const learned = new LearnedOutput()
    for (const tokens of lengths) learned.learn(tokens)
    return learned.p90
  }

  test('begins at 1,024 and never falls below 64', () => {
    expect(afterAll([])).toBe(1_024)
    expect(afterAll(Array.from({ length: 300 }, () => 1))).toBe(64)
  })

  test.each([80, 300, 5_000])('converges to %i if every answer takes as many', (tokens) => {
    expect(afterAll(Array.from({ length: 50 }, () => tokens))).toBe(tokens)
  })

  test('is close to the value that nine of ten answers stay below', () => {
    const random = new SeededRandom(SEED)
    const lengths = Array.from({ length: 400 }, () => random.below(2_000)) // p90 is 1,800
    const p90 = afterAll(lengths)
    expect(p90, `seed ${SEED}`).toBeGreaterThan(1_400)
    expect(p90, `seed ${SEED}`).toBeLessThan(2_000)
  })
})

describe('X23 the count of a prompt without a tokenizer', () => {
  const sizeOf = (body: object) => promptSize({ model: 'm', ...body }, JSON.stringify(body).length)
  const counted = (body: object, ratio = 1): number => countedPrompt(sizeOf(body), { ratio }).tokens
  const user = (content: string) => ({ messages: [{ role: 'user', content }] })
  const TOOL = {
    name: 'read_file',
    description: 'Reads a file from the local disk. Returns at most 2000 lines.',
    input_schema: {
      type: 'object',
      properties: { path: { type: 'string', description: 'Absolute path of the file' }, limit: { type: 'integer', minimum: 1 } },
      required: ['path'],
    },
  }

  // ten times the text, by o200k_base and cl100k_base (js-tiktoken 1.0.21), with four tokens for the template
  const TRUTHS: [string, string, number, number][] = [
    ['prose', 'All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience.', 205, 205],
    [
      'code',
      'for (let at = start; at < end; at++) {\n    const kind = KIND_OF[text.charCodeAt(at)]\n    if (kind === LETTER) continue\n  }\n',
      374,
      354,
    ],
    ['Chinese', '人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。', 374, 524],
    ['Japanese', 'すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。', 354, 454],
    ['Korean', '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.', 244, 414],
    [
      'base64',
      'kR8mfQ2v0cJtV7xYw3Zl5sN1oPbAe4Gh9uDiKjLM6nXyTzSqWrEU+FgHBvCaI/0pOd8k2mJ7Qf5tRxYw3Vl9sZ1oNbPe4Ah6uGiDjKLcMnXyTzSqWrEU==',
      924,
      984,
    ],
    ['digits', '7919 31 245489 490978 736467 981956 1227445', 195, 195],
  ]
  /** Of one tool, as compact JSON and with an indentation of four: both by o200k_base. */
  const TOOL_TRUTHS = [70, 123]

  test.each<[string, string, number, number]>(TRUTHS)('of %s is at least the truth, and at most 3.2 times', (_what, text, ...truths) => {
    for (const truth of truths) expect(counted(user(text.repeat(10))) / truth).toSatisfy((times: number) => times >= 1 && times <= 3.2)
  })

  test('has room for a template that indents the schemas of tools', () => {
    const of = counted({ ...user('hi'), tools: Array.from({ length: 10 }, () => TOOL) }) - counted(user('hi'))
    for (const truth of TOOL_TRUTHS) expect(of / (10 * truth)).toSatisfy((times: number) => times >= 1 && times <= 3.2)
  })

  test('follows the experience with a model upwards alone, by a tenth more', () => {
    const body = user('one two three '.repeat(10_000)) // beside which the allowance for a template is small
    expect(counted(body, 0.5)).toBe(counted(body))
    expect(counted(body, 2) / sizeOf(body).tokens).toBeCloseTo(2.2, 2)
  })

  test('is never above the bytes of the body', () => {
    const { maxTokens } = sizeOf(user('漢'.repeat(100)))
    expect(counted(user('漢'.repeat(100)), 4)).toBe(maxTokens)
  })
})
