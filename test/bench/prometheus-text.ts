/** Reads the text format of Prometheus metrics, as far as a report needs it. Pure. */

/** One sample: `name{label="value"} 3`. */
export interface MetricSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** Every sample of the metrics with these names. @param text what /metrics answered */
export function readSamples(text: string, names: readonly string[]): MetricSample[] {
  return text.split('\n').flatMap((row) => {
    const [, name = '', labels = '', value = ''] = SAMPLE.exec(row) ?? []
    if (!names.includes(name)) return []
    const pairs = [...labels.matchAll(LABEL)].map(([, label = '', content = '']) => [label, content])
    return [{ name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }]
  })
}

/** Sums samples by the name that `nameOf` makes of each; a sample without a name does not count. */
export function sumBy(samples: readonly MetricSample[], nameOf: (sample: MetricSample) => string | undefined): Map<string, number> {
  const sums = new Map<string, number>()
  for (const sample of samples) {
    const name = nameOf(sample)
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + sample.value)
  }
  return sums
}

/** The increase of each counter between two readings, without the counters that stayed the same. */
export function increase(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): Map<string, number> {
  const grown = [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const)
  return new Map(grown.filter(([, value]) => value !== 0))
}
