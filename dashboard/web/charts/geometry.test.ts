import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { barsOf, labelled, scaleMarks, scaleTop } from './geometry.ts'
import type { Stacks } from './stacks.ts'

const stacksOf = (...series: ReadonlyArray<readonly bigint[]>): Stacks => ({
  columns: (series[0] ?? []).map((_, index) => ({ label: String(index), name: String(index) })),
  series: series.map((values, index) => ({ name: String(index), look: index === 0 ? 1 : 2, values })),
})

describe('the scale', () => {
  it.each([
    [9_020_000n, 10_000_000n],
    [5_350_000n, 8_000_000n],
    [1n, 4n],
    [5n, 8n],
    [8n, 8n],
    [9n, 20n],
    [41n, 80n],
    [344_000_000n, 400_000_000n],
    [0n, 4n],
  ])('for %i ends at %i, whose quarters are round', (most, top) => {
    expect(scaleTop(stacksOf([most]))).toBe(top)
  })

  it('has its marks at the quarters', () => {
    expect(scaleMarks(10n)).toEqual([10n, 7n, 5n, 2n, 0n])
    expect(scaleMarks(scaleTop(stacksOf([9n])))).toEqual([20n, 15n, 10n, 5n, 0n])
  })

  it('holds every column, and wastes at most three fifths', () => {
    fc.assert(
      fc.property(fc.bigInt(4n, 10n ** 24n), (most) => {
        const top = scaleTop(stacksOf([most]))
        expect(top >= most && most * 5n >= top * 2n && top % 4n === 0n).toBe(true)
      }),
    )
  })
})

describe('bars', () => {
  it('stand on each other, the first series at the bottom', () => {
    const [first, second] = barsOf(stacksOf([2n, 0n], [1n, 4n]), 4n)
    expect(first?.bars).toEqual([
      { look: 1, y: 50, height: 50 },
      { look: 2, y: 25, height: 25 },
    ])
    expect(second?.bars).toEqual([{ look: 2, y: 0, height: 100 }])
  })

  it('stay within the plot, side by side', () => {
    for (const count of [1, 7, 13, 31]) {
      const columns = barsOf(stacksOf(Array.from({ length: count }, () => 1n)), 4n)
      expect(columns[0]?.x).toBe(0)
      const last = columns.at(-1)
      expect((last?.x ?? 0) + (last?.width ?? 0)).toBeCloseTo(100)
      for (const { x, width, barX, barWidth } of columns) expect(barX >= x && barX + barWidth <= x + width).toBe(true)
    }
  })

  it('of amounts that no float holds have the right heights', () => {
    const large = 10n ** 30n
    expect(barsOf(stacksOf([large, large / 4n]), large).map(({ bars }) => bars[0]?.height)).toEqual([100, 25])
  })
})

it.each([
  [7, [0, 1, 2, 3, 4, 5, 6]],
  [30, [0, 10, 19, 29]],
  [13, [0, 4, 8, 12]],
  [1, [0]],
])('of %i columns, those at %j have a label', (count, places) => {
  expect(labelled(count)).toEqual(places)
})
