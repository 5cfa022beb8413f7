import { describe, expect, it } from 'vitest'
import { bySize, columnTotals, highestColumn, totalOf, type Stacks } from './stacks.ts'

const nameOf = (id: string): string => (id === '' ? 'Other' : id)
const column = (label: string) => ({ label, name: `day ${label}` })

describe('series', () => {
  it('stand by their size, so that the largest is at the bottom, and equal ones by name', () => {
    const series = bySize(
      new Map([
        ['b', [1n, 1n]],
        ['a', [2n, 0n]],
        ['c', [0n, 9n]],
      ]),
      nameOf,
    )
    expect(series.map(({ name, look }) => [name, look])).toEqual([
      ['c', 1],
      ['a', 2],
      ['b', 3],
    ])
  })

  it('from the eighth on are one, and no amount is lost', () => {
    const many = new Map(Array.from({ length: 12 }, (_, index) => [`m${String(index).padStart(2, '0')}`, [BigInt(100 - index), 1n]]))
    many.set('', [5n, 0n])
    const series = bySize(many, nameOf)
    expect(series.map(({ look }) => look)).toEqual([1, 2, 3, 4, 5, 6, 7, 'other'])
    expect(series.at(-1)).toEqual({ name: 'Other', look: 'other', values: [93n + 92n + 91n + 90n + 89n + 5n, 5n] })
    expect(totalOf({ columns: [], series })).toBe([...many.values()].flat().reduce((sum, value) => sum + value, 0n))
  })

  it('without anything in them are left out', () => {
    expect(
      bySize(
        new Map([
          ['a', [0n]],
          ['', [0n]],
        ]),
        nameOf,
      ),
    ).toEqual([])
  })
})

describe('columns', () => {
  const stacks: Stacks = {
    columns: [column('1'), column('2'), column('3')],
    series: [
      { name: 'a', look: 1, values: [1n, 5n, 0n] },
      { name: 'b', look: 2, values: [2n, 0n, 4n] },
    ],
  }

  it('have the sums of all series', () => {
    expect([columnTotals(stacks), totalOf(stacks)]).toEqual([[3n, 5n, 4n], 12n])
  })

  it('know the highest', () => {
    expect(highestColumn(stacks)?.name).toBe('day 2')
    expect(highestColumn({ ...stacks, series: [] })).toBeUndefined()
  })
})
