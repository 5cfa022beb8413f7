/** Prints the sizes of the code with their aims and caps, and the ten files nearest to a cap. The linter measures: with caps of 0 it reports every value. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { table } from './bench/part.ts'

const ROOT = join(import.meta.dirname, '..')
const PRODUCT = ['api', 'lib', 'gateway', 'operator', 'cli', 'standalone', 'dashboard', 'examples']

interface Measure {
  readonly name: string
  readonly rule: string
  readonly aim: string
  readonly cap: number
}

const MEASURES: readonly Measure[] = [
  { name: 'file lines', rule: 'max-lines', aim: '100 / 250', cap: 400 },
  { name: 'function lines', rule: 'max-lines-per-function', aim: '12 / 35', cap: 60 },
  { name: 'parameters', rule: 'max-params', aim: '3', cap: 4 },
  { name: 'depth', rule: 'max-depth', aim: '2', cap: 3 },
  { name: 'complexity', rule: 'complexity', aim: '6', cap: 10 },
  { name: 'statements', rule: 'max-statements', aim: '12', cap: 20 },
]

interface Finding {
  readonly rule: string
  readonly file: string
  readonly value: number
}

/** Runs the linter with every cap at 0: each message then has one measured value, in brackets or as its first number. */
function measure(): Finding[] {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-sizes-'))
  const config = join(folder, 'sizes.json')
  const rules = Object.fromEntries(MEASURES.filter(({ rule }) => rule !== 'max-lines').map(({ rule }) => [rule, ['error', { max: 0 }]]))
  writeFileSync(config, JSON.stringify({ categories: { correctness: 'off' }, rules }))
  const args = [join(ROOT, 'node_modules/oxlint/bin/oxlint'), '-c', config, '-f', 'json', '--no-ignore', ...PRODUCT]
  const { stdout } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28 })
  rmSync(folder, { recursive: true })
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string; filename: string; message: string }[] } // oxlint's format
  return diagnostics.flatMap(({ code, filename, message }) => {
    const rule = /\(([\w-]+)\)/.exec(code)?.[1] ?? ''
    const value = /\((\d+)\)|of (\d+)/.exec(message)
    return value === null || filename.endsWith('.test.ts') ? [] : [{ rule, file: filename, value: Number(value[1] ?? value[2]) }]
  })
}

interface SourceFile {
  readonly file: string
  readonly lines: number
}

function sources(folders: readonly string[]): SourceFile[] {
  return folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => {
        const lines = readFileSync(join(ROOT, folder, name), 'utf8')
          .trimEnd()
          .split('\n').length
        return { file: join(folder, name), lines }
      }),
  )
}

function main(): void {
  const all = sources(PRODUCT)
  const code = all.filter(({ file }) => !file.endsWith('.test.ts'))
  const sum = (files: readonly SourceFile[]): number => files.reduce((total, { lines }) => total + lines, 0)
  const tests = sum(all) - sum(code) + sum(sources(['test']))
  const findings = [...code.map(({ file, lines }): Finding => ({ rule: 'max-lines', file, value: lines })), ...measure()]
  const rows = MEASURES.map(({ name, rule, aim, cap }) => {
    const values = findings.flatMap((one) => (one.rule === rule ? [one.value] : [])).toSorted((a, b) => a - b)
    const at = (share: number): number => values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0
    return [name, String(at(0.5)), String(at(0.9)), String(at(1)), aim, String(cap)]
  })
  const shares = findings.flatMap(({ rule, file, value }) =>
    MEASURES.filter((one) => one.rule === rule).map(({ name, cap }) => ({ file, share: value / cap, text: `${name} ${value} of ${cap}` })),
  )
  const nearest = Map.groupBy(
    shares.toSorted((a, b) => b.share - a.share),
    ({ file }) => file,
  )
  const worst = [...nearest.values()].slice(0, 10).flatMap(([first]) => (first ? [first] : []))
  const lines = [
    ...table([['', 'med', 'p90', 'max', 'aim', 'cap'], ...rows]),
    `${code.length} source files, ${sum(code)} lines; tests ${tests} lines, ${(tests / sum(code)).toFixed(2)} per source line (aim 1.5 to 3)`,
    'the ten files nearest to a cap',
    ...worst.map(({ share, text, file }) => `  ${(share * 100).toFixed(0).padStart(3)} %  ${text.padEnd(28)} ${file}`),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}

main()
