/** Compares the two runs of llama.cpp's tests. Pure. */
import { table } from '../bench/part.ts'

/** One test of one run, as the plugin of pytest reports it. */
export interface TestOutcome {
  readonly test: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** First line of the failure; '' without one. */
  readonly why: string
  readonly seconds: number
  /** Its requests of routes that a gateway serves, such as `POST /v1/messages`. */
  readonly routes: readonly string[]
}

/** `same`: passed both ways. `listed`: failed through the gateway, as the list says. The other two make the run fail. */
export type Verdict = 'same' | 'listed' | 'different' | 'no longer differs'

export interface Comparison {
  readonly test: string
  readonly verdict: Verdict
  readonly requests: number
  /** How the test failed through the gateway. */
  readonly why: string
}

/** Whether a test says anything about a gateway: it passes without one, and calls a route that a gateway serves. */
export const isCompared = ({ outcome, routes }: TestOutcome): boolean => outcome === 'passed' && routes.length > 0

/** Compares tests that pass directly. A test without a report of the gateway's run counts as failed. @param listed reasons by test */
export function compare(
  direct: readonly TestOutcome[],
  through: readonly TestOutcome[],
  listed: Readonly<Record<string, string>>,
): Comparison[] {
  const byTest = new Map(through.map((one) => [one.test, one]))
  return direct.filter(isCompared).map(({ test, routes }) => {
    const other = byTest.get(test)
    const isPassed = other?.outcome === 'passed'
    return {
      test,
      verdict: verdictOf(isPassed, test in listed),
      requests: other?.routes.length ?? routes.length,
      why: isPassed ? '' : other?.why || 'the test reported nothing',
    }
  })
}

function verdictOf(isPassed: boolean, isListed: boolean): Verdict {
  if (isPassed) return isListed ? 'no longer differs' : 'same'
  return isListed ? 'listed' : 'different'
}

export const isFailure = ({ verdict }: Comparison): boolean => verdict === 'different' || verdict === 'no longer differs'

/** The table by test. */
export function linesByTest(comparisons: readonly Comparison[]): string[] {
  const head = ['direct', 'gateway', 'verdict', 'requests', 'test']
  const row = ({ test, verdict, requests }: Comparison): string[] => {
    const gateway = verdict === 'same' || verdict === 'no longer differs' ? 'passed' : 'failed'
    return ['passed', gateway, verdict, String(requests), test]
  }
  return table([head, ...comparisons.map(row)])
}

/** Counts by file of the tests. */
export function linesByFile(direct: readonly TestOutcome[], comparisons: readonly Comparison[]): string[] {
  const fileOf = ({ test }: { readonly test: string }): string => test.split('::')[0] ?? ''
  const count = (list: ReadonlyArray<{ readonly test: string }>, file: string): string =>
    String(list.filter((one) => fileOf(one) === file).length)
  const files = [...new Set(direct.map(fileOf))]
  const rows = files.map((file) => [
    file,
    count(direct, file),
    count(
      direct.filter(({ outcome }) => outcome === 'passed'),
      file,
    ),
    count(comparisons, file),
    ...(['same', 'listed'] as const).map((verdict) =>
      count(
        comparisons.filter((one) => one.verdict === verdict),
        file,
      ),
    ),
    count(comparisons.filter(isFailure), file),
  ])
  return table([['file', 'tests', 'pass direct', 'compared', 'pass through', 'listed', 'DIFFERENT'], ...rows])
}
