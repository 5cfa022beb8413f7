import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { SettledSubjects } from './settled-subjects.ts'

let clock: ManualClock
let commands: string[][]
let isBroken: boolean
let names: SettledSubjects

beforeEach(() => {
  clock = new ManualClock(0)
  commands = []
  isBroken = false
  names = new SettledSubjects({
    clock,
    add: async (uids) => {
      commands.push([...uids])
      if (isBroken) throw new Error('away')
    },
  })
})

describe('subjects that have spent from a budget', () => {
  test('are named once per flush, in one command', async () => {
    for (const uid of ['a', 'b', 'a', 'a']) names.add(uid)
    expect(commands).toEqual([])
    await clock.advance(250)
    expect(commands).toEqual([['a', 'b']])
    await clock.advance(1_000)
    expect(commands).toHaveLength(1)
  })

  test('are sent 500 at a time, so that no command delays the others', async () => {
    for (let i = 0; i < 1_100; i += 1) names.add(`key-${i}`)
    await clock.advance(750)
    expect(commands.map(({ length }) => length)).toEqual([500, 500, 100])
  })

  test('are forgotten if the store does not accept them, and later ones are named', async () => {
    isBroken = true
    names.add('a')
    await clock.advance(250)
    isBroken = false
    names.add('b')
    await clock.advance(250)
    expect(commands).toEqual([['a'], ['b']])
  })

  test('are named at the end too', async () => {
    names.add('a')
    await names.close()
    expect(commands).toEqual([['a']])
  })
})
