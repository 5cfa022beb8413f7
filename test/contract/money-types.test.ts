/** No float becomes money: the expressions that the compiler accepts and refuses as an amount. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const ROOT = join(import.meta.dirname, '../..')

/** [expression, whether it compiles as `Micros`]: the fixture has one line for each. */
const EXPRESSIONS: ReadonlyArray<readonly [string, boolean]> = [
  ['costOf({ tokens: 7, perMillion: price })', true],
  ["parseMicros('1.50') ?? price", true],
  ['microsOf(1_500_000) ?? price', true],
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
  ["parseMicros('1.50')", false],
  ['parseMicros(1.5)', false],
  ['costOf({ tokens: 7, perMillion: 0.15 })', false],
]

/** Wrong type of a result or of an argument. Any other compiler error would prove nothing about money. */
const WRONG_TYPE = /^fixture\.mts\((\d+),\d+\): error TS(?:2322|2345):/

const folder = temporaryFolderOfFile()
let refused: ReadonlySet<number>

beforeAll(() => {
  writeFileSync(join(folder, 'fixture.mts'), fixture())
  const compilerOptions = { types: [], noUnusedParameters: false }
  const config = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: ['fixture.mts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  refused = refusedLines()
}, 60_000)

it.each(EXPRESSIONS)('%s as an amount of money: compiles is %s', (expression, compiles) => {
  const line = EXPRESSIONS.findIndex(([other]) => other === expression)
  expect(!refused.has(line)).toBe(compiles)
})

function fixture(): string {
  const names = 'costOf, type Micros, microsOf, parseMicros'
  const imports = `import { ${names} } from '${join(ROOT, 'lib/contract/values/micros.ts')}'\n`
  const parameters = 'amount: Micros, price: Micros'
  return imports + EXPRESSIONS.map(([expression], i) => `export const f${i} = (${parameters}): Micros => ${expression}\n`).join('')
}

/** @returns indexes of the expressions that the compiler refuses */
function refusedLines(): Set<number> {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout, stderr } = spawnSync(process.execPath, [tsc, '--pretty', 'false', '-p', folder], { cwd: folder, encoding: 'utf8' })
  const errors = stdout.split('\n').filter((line) => line.includes('error TS'))
  const indexes = errors.map((line) => Number(WRONG_TYPE.exec(line)?.[1]) - 2) // after the line of imports
  if (!indexes.every((index) => index >= 0)) throw new Error(`the fixture itself is wrong: ${stdout}${stderr}`)
  return new Set(indexes)
}
