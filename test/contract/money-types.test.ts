/** No float becomes money: the expressions that the compiler accepts and refuses as an amount, as a signed amount and as a sum. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const ROOT = join(import.meta.dirname, '../..')

type MoneyType = 'Micros' | 'SignedMicros' | 'bigint'
type Expression = readonly [expression: string, compiles: boolean]

/** Whatever an amount is, with or without a sign. */
const ANY_AMOUNT: readonly Expression[] = [
  ['amount < price ? amount : price', true],
  ['amount * 1.2', false],
  ['amount * price', false],
  ['amount / 2', false],
  ['amount + price', false],
  ['amount - price', false],
  ['amount % 2', false],
  ['-amount', false],
  ['amount ** 2', false],
  ['1.5', false],
  ['1_500_000', false],
  ["parseFloat('1.5')", false],
  ["Number('1.5')", false],
  ["Number.parseInt('1')", false],
  ['Math.max(amount, price)', false],
  ['Math.round(amount * 1.2)', false],
  ['1_500_000n', false],
  ["'1.50'", false],
  ['sum', false],
]

/** [type of the amount, expression, whether it compiles as that type]: the fixture has one line for each. */
const EXPRESSIONS: ReadonlyArray<readonly [MoneyType, ...Expression]> = [
  ...expressions('Micros', [
    ['costOf({ tokens: 7, perMillion: amount })', true],
    ["parseMicros('1.50') ?? price", true],
    ['microsOf(1_500_000) ?? price', true],
    ...ANY_AMOUNT,
    ["parseMicros('1.50')", false],
    ['parseMicros(1.5)', false],
    ['costOf({ tokens: 7, perMillion: 0.15 })', false],
    ["parseSignedAmount('1.50') ?? price", false],
  ]),
  ...expressions('SignedMicros', [
    ["parseSignedAmount('-1.50') ?? price", true],
    ['signedMicrosOf(-1_500_000) ?? price', true],
    ...ANY_AMOUNT,
    ['-1_500_000', false],
    ["parseSignedAmount('-1.50')", false],
    ['parseSignedAmount(-1.5)', false],
    ["parseMicros('1.50') ?? price", false],
    ['halvesOf(sum).low', false],
  ]),
  ...expressions('bigint', [
    ["parseSum('-1500000') ?? 0n", true],
    ['sum + BigInt(amount)', true],
    ['sumOfHalves(halvesOf(sum))', true],
    ['amount', false],
    ['1.5', false],
    ['sum * 1.2', false],
    ['sum + amount', false],
    ["parseSum('-1500000')", false],
    ['parseSum(-1.5)', false],
    ["'1.50'", false],
  ]),
]

/** Wrong type of a result, of an argument or of an operand. Any other compiler error would prove nothing about money. */
const WRONG_TYPE = /^fixture\.mts\((\d+),\d+\): error TS(?:2322|2345|2365):/
const IMPORTS = [
  `import { costOf, type Micros, microsOf, parseMicros } from '${join(ROOT, 'lib/contract/values/micros.ts')}'`,
  `import { halvesOf, parseSignedAmount, parseSum, type SignedMicros, signedMicrosOf, sumOfHalves } from '${join(ROOT, 'lib/contract/values/signed-micros.ts')}'`,
]

const folder = temporaryFolderOfFile()
let refused: ReadonlySet<number>

beforeAll(() => {
  writeFileSync(join(folder, 'fixture.mts'), fixture())
  const compilerOptions = { types: [], noUnusedParameters: false }
  const config = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: ['fixture.mts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  refused = refusedLines()
}, 60_000)

it.each(EXPRESSIONS)('as money of the type %s: %s compiles is %s', (type, expression, compiles) => {
  const line = EXPRESSIONS.findIndex(([other, another]) => other === type && another === expression)
  expect(!refused.has(line)).toBe(compiles)
})

function expressions(type: MoneyType, list: readonly Expression[]): ReadonlyArray<readonly [MoneyType, ...Expression]> {
  return list.map(([expression, compiles]) => [type, expression, compiles] as const)
}

function fixture(): string {
  const lines = EXPRESSIONS.map(([type, expression], i) => {
    const money = type === 'bigint' ? 'SignedMicros' : type
    return `export const f${i} = (amount: ${money}, price: ${money}, sum: bigint): ${type} => ${expression}`
  })
  return [...IMPORTS, ...lines, ''].join('\n')
}

/** @returns indexes of the expressions that the compiler refuses */
function refusedLines(): Set<number> {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout, stderr } = spawnSync(process.execPath, [tsc, '--pretty', 'false', '-p', folder], { cwd: folder, encoding: 'utf8' })
  const errors = stdout.split('\n').filter((line) => line.includes('error TS'))
  const indexes = errors.map((line) => Number(WRONG_TYPE.exec(line)?.[1]) - 1 - IMPORTS.length)
  if (!indexes.every((index) => index >= 0)) throw new Error(`the fixture itself is wrong: ${stdout}${stderr}`)
  return new Set(indexes)
}
