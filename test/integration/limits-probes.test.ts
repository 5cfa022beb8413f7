/** Bodies that try to get more output than their key has: at four gateway processes on one Redis, before a server that reads the most in each. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { CAPS, type GreedyModel, MULTIPLIERS, startGreedyModel } from '../support/greedy-model.ts'
import { bodyWith, LimitsLab } from '../support/limit-processes.ts'

const CONTEXT = 8_000
/** Tokens: more than two whole contexts. */
const AMOUNT = 20_000
/** Texts of a value; two for a field that is written twice. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  '-1': ['-1'],
  '0': ['0'],
  '1': ['1'],
  '2^32 - 1, which may be read as -1': ['4294967295'],
  '10^300': ['1e300'],
  'a fraction': ['300.5'],
  'a text': ['"300"'],
  'two copies': ['1', '7'],
  'two copies, the larger first': ['7000', '2'],
}
/** What a body has beside the probed field. */
const BESIDE = [{}, { max_tokens: 1 }, { max_tokens: 1, max_completion_tokens: 1 }, { n_predict: 1, n: 2 }]
const REFUSED = new Set(['a fraction', 'a text'])
const PROBES = [...CAPS, ...MULTIPLIERS].flatMap((field) =>
  Object.keys(VALUES).map((value, at) => ({ field, value, uid: `${field}-${at}` })),
)

let lab: LimitsLab
let model: GreedyModel

beforeAll(async () => {
  model = await startGreedyModel(CONTEXT)
  const budgets = [{ name: 'all', unit: 'Tokens', window: 'Lifetime', timeZone: 'UTC', amount: AMOUNT, onExceeded: 'Block' } as const]
  lab = await LimitsLab.start({
    timing: LEDGER_TIMING,
    clockShiftsMs: [0, 0, 0, 0],
    keys: Object.fromEntries(PROBES.map(({ uid }) => [uid, { budgets }])),
    model,
    modelRecord: { contextTokens: CONTEXT, maxOutputTokens: CONTEXT },
  })
})
afterAll(() => lab.stop())

test.each(PROBES)('L3 #37001, #34223 with the $field $value no more is generated than a budget has', async ({ field, value, uid }) => {
  const bodies = BESIDE.map((beside) => withField(field, VALUES[value] ?? [], beside))
  const statuses = await Promise.all(lab.gateways.flatMap((gateway) => bodies.map((body) => statusOf(gateway, uid, body))))
  expect(model.tokens.get(uid) ?? 0).toBeLessThanOrEqual(AMOUNT)
  if (REFUSED.has(value)) expect(new Set(statuses)).toEqual(new Set([400]))
  if (value === '1') expect(statuses).toContain(200)
})

async function statusOf(gateway: (typeof lab.gateways)[number], uid: string, body: string): Promise<number> {
  const answer = await lab.post(gateway, uid, { body })
  await answer.arrayBuffer()
  return answer.status
}

/** A body with a field in one or more copies, which no writer of JSON makes. */
function withField(field: string, values: readonly string[], beside: object): string {
  const body = bodyWith({ messages: [{ role: 'user', content: 'Say something.' }], ...beside, [field]: undefined })
  return `${body.slice(0, -1)}${values.map((value) => `,"${field}":${value}`).join('')}}`
}
