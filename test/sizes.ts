/** Prints the sizes of the code with their aims and caps, and the ten files nearest to a cap. The linter measures: with caps of 0 it reports every value. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const PRODUCT = ['api', 'lib', 'gateway', 'operator', 'cli', 'standalone', 'examples']

interface Measure {
  readonly name: string
  readonly rule: string
  readonly aim: string
  readonly cap: number
}

const MAX_FILE_LINES = 400
const MEASURES: readonly Measure[] = [
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
  const rules = Object.fromEntries(MEASURES.map(({ rule }) => [rule, ['error', { max: 0 }]]))
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
  readonly text: string
  readonly lines: number
}

function sources(folders: readonly string[]): SourceFile[] {
  return folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => {
        const text = readFileSync(join(ROOT, folder, name), 'utf8')
        return { file: join(folder, name), text, lines: text.trimEnd().split('\n').length }
      }),
  )
}

const at = (sorted: readonly number[], share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

function row(name: string, values: readonly number[], aim: string, cap: number): string {
  const sorted = values.toSorted((a, b) => a - b)
  const shown = [at(sorted, 0.5), at(sorted, 0.9), at(sorted, 1)].map((value) => String(value).padStart(6)).join('')
  return `${name.padEnd(16)}${shown}   ${aim.padEnd(12)}${cap}`
}

/** Counts casts, without comments, renamed imports and `as const`. */
function castsIn(text: string): number {
  const bare = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$|^(import|export) .*$/gm, '')
  return bare.match(/[\w)\]}>] as (?!const\b)[A-Za-z{(]/g)?.length ?? 0
}

/** The measure of a file that is nearest to its cap. */
function nearestCap({ file, lines }: SourceFile, findings: readonly Finding[]) {
  const inFile = findings.filter((finding) => finding.file === file)
  const measured = MEASURES.flatMap(({ name, rule, cap }) => {
    const values = inFile.filter((finding) => finding.rule === rule).map(({ value }) => value)
    return values.length === 0 ? [] : [{ name, value: Math.max(...values), cap }]
  })
  const all = [{ name: 'file lines', value: lines, cap: MAX_FILE_LINES }, ...measured]
  const worst = all.reduce((a, b) => (b.value / b.cap > a.value / a.cap ? b : a))
  return { file, ...worst }
}

function main(): void {
  const all = sources(PRODUCT)
  const isTest = ({ file }: SourceFile) => file.endsWith('.test.ts')
  const code = all.filter((file) => !isTest(file))
  const tests = [...all.filter(isTest), ...sources(['test'])]
  const findings = measure()
  const out = [
    '                   med   p90   max   aim         cap',
    row(
      'file lines',
      code.map(({ lines }) => lines),
      '100 / 250',
      MAX_FILE_LINES,
    ),
  ]
  for (const { name, rule, aim, cap } of MEASURES) {
    out.push(
      row(
        name,
        findings.filter((finding) => finding.rule === rule).map(({ value }) => value),
        aim,
        cap,
      ),
    )
  }
  const sum = (files: readonly SourceFile[]) => files.reduce((total, { lines }) => total + lines, 0)
  const casts = code.reduce((total, { text }) => total + castsIn(text), 0)
  out.push(
    '',
    `${code.length} source files, ${sum(code)} lines; tests ${sum(tests)} lines, ${(sum(tests) / sum(code)).toFixed(2)} per source line (aim 1.5 to 3)`,
  )
  out.push(`casts per 1,000 lines: ${((casts * 1000) / sum(code)).toFixed(1)} (aim 5)`)
  out.push('', 'the ten files nearest to a cap: share of the cap, measure, largest value in the file, cap')
  const worst = code.map((file) => nearestCap(file, findings))
  for (const { file, name, value, cap } of worst.toSorted((a, b) => b.value / b.cap - a.value / a.cap).slice(0, 10)) {
    out.push(
      `  ${`${((value / cap) * 100).toFixed(0)} %`.padStart(6)}  ${name.padEnd(15)}${String(value).padStart(4)} of ${String(cap).padEnd(4)} ${file}`,
    )
  }
  process.stdout.write(`${out.join('\n')}\n`)
}

main()
