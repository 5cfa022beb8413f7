/** Compares the cases of SDKs, run directly and through a gateway. Pure. */

/** One case of one run: its facts, or the error of the SDK. */
export interface CaseLine {
  readonly case: string
  readonly facts?: unknown
  readonly error?: string
}

type Verdict = 'ok' | 'error' | 'other facts' | 'missing'

/** A fact that is `false` says that an answer lacks something, so the case fails directly already. */
function verdictOf(line: CaseLine | undefined): Verdict {
  if (line === undefined) return 'missing'
  return line.error !== undefined || JSON.stringify(line.facts ?? null).includes('false') ? 'error' : 'ok'
}

function through(direct: CaseLine, gateway: CaseLine | undefined): Verdict {
  const verdict = verdictOf(gateway)
  return verdict === 'ok' && JSON.stringify(gateway?.facts) !== JSON.stringify(direct.facts) ? 'other facts' : verdict
}

/** The table by case. */
export function rowsOf(direct: readonly CaseLine[], gateway: readonly CaseLine[]): Array<Readonly<Record<string, string>>> {
  const byName = new Map(gateway.map((line) => [line.case, line]))
  return direct.map((line) => ({ case: line.case, direct: verdictOf(line), gateway: through(line, byName.get(line.case)) }))
}

/** What must not be: a case that fails directly, so that it shows nothing, or one with another verdict or other facts through the gateway. */
export function failuresOf(direct: readonly CaseLine[], gateway: readonly CaseLine[]): string[] {
  const byName = new Map(gateway.map((line) => [line.case, line]))
  return direct.flatMap((line) => {
    const other = byName.get(line.case)
    if (verdictOf(line) !== 'ok') return [`${line.case}: directly: ${shown(line)}`]
    const verdict = through(line, other)
    return verdict === 'ok' ? [] : [`${line.case}: through the gateway: ${verdict}: ${shown(other)}; directly: ${shown(line)}`]
  })
}

const LONGEST = 300

function shown(line: CaseLine | undefined): string {
  return (line?.error ?? JSON.stringify(line?.facts) ?? 'nothing').slice(0, LONGEST)
}
