import type { LookupAddress } from 'node:dns'
import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { NameLookup, type SystemLookup } from './name-lookup.ts'

const ADDRESS: LookupAddress = { address: '10.0.0.1', family: 4 }

let clock: ManualClock
/** Look-ups that the system has not answered, oldest first. */
let open: Array<{ readonly name: string; readonly answer: Parameters<SystemLookup>[2] }>
let names: NameLookup

beforeEach(() => {
  clock = new ManualClock()
  open = []
  names = new NameLookup({ clock, maxInFlight: 2, system: (name, _options, answer) => void open.push({ name, answer }) })
})

function find(name: string, namespace = 'shop'): Promise<string> {
  return new Promise((resolve) =>
    names.find(name, namespace, (error, addresses) => resolve(error ? error.message : addresses.map(({ address }) => address).join())),
  )
}

/** Answers the oldest look-up, as the system would. */
function answer(found: readonly LookupAddress[] | Error = [ADDRESS]): void {
  const next = open.shift()
  if (found instanceof Error) next?.answer(found, [])
  else next?.answer(null, [...found])
}

describe('a name', () => {
  test('is looked up once for all requests during the look-up and for ten seconds', async () => {
    const asked = [find('a'), find('a', 'other')]
    expect(open).toHaveLength(1)
    answer()
    expect(await Promise.all(asked)).toEqual(['10.0.0.1', '10.0.0.1'])
    await clock.advance(9_999)
    expect(await find('a')).toBe('10.0.0.1')
    expect(open).toHaveLength(0)
  })

  test('is served from the last answer while a newer one is awaited, and after a failure, for five minutes', async () => {
    const first = find('a')
    answer()
    await first
    await clock.advance(10_000)
    expect(await find('a')).toBe('10.0.0.1')
    expect(open).toHaveLength(1)
    await clock.advance(10_000)
    answer(new Error('silent'))
    expect(await find('a')).toBe('10.0.0.1')
    expect(open).toHaveLength(0)
  })

  test('keeps its last address although its name server fails again and again, for five minutes and not longer', async () => {
    const first = find('a')
    answer()
    await first
    await clock.advance(10_000)
    for (let failures = 0; failures < 3; failures++) {
      expect(await find('a')).toBe('10.0.0.1')
      answer(new Error('silent'))
      await clock.advance(2_000)
    }
    expect(await find('a')).toBe('10.0.0.1')
    answer(new Error('silent'))
    await clock.advance(283_999)
    expect(await find('a')).toBe('10.0.0.1')
    answer(new Error('silent'))
    await clock.advance(1)
    expect(await find('a')).toBe('silent')
  })

  test('that was not found is looked up again after two seconds, and one with a silent name server after thirty', async () => {
    const first = find('quick')
    answer(new Error('not found'))
    expect(await first).toBe('not found')
    expect(await find('quick')).toBe('not found')
    await clock.advance(2_000)
    void find('quick')
    expect(open).toHaveLength(1)
    await clock.advance(10_000)
    answer(new Error('timed out'))
    await clock.advance(29_999)
    expect(await find('quick')).toBe('timed out')
    await clock.advance(1)
    void find('quick')
    expect(open).toHaveLength(1)
  })
})

describe('L8 a name server that is silent while the process starts', () => {
  test('is asked again in the background, so that its names are usable two seconds after it begins to answer', async () => {
    const first = find('a')
    await clock.advance(10_000)
    answer(new Error('timed out'))
    expect(await first).toBe('timed out')
    await clock.advance(1_999)
    expect([await find('a'), open.length]).toEqual(['timed out', 0])
    await clock.advance(1)
    expect([await find('a'), open.length]).toEqual(['timed out', 1])
    answer()
    expect(await find('a')).toBe('10.0.0.1')
  })

  test('and stays silent is asked ever more rarely, at last every thirty seconds', async () => {
    const pauses: number[] = []
    void find('a')
    for (let round = 0; round < 7; round += 1) {
      await clock.advance(10_000)
      answer(new Error('timed out'))
      let seconds = 0
      while (open.length === 0) {
        await clock.advance(1_000)
        seconds += 1
        void find('a')
      }
      pauses.push(seconds)
    }
    expect(pauses).toEqual([2, 4, 8, 16, 30, 30, 30])
  })
})

describe('the known state of a name', () => {
  test('is a failure while the result of its last failed look-up is cached, and none while an address is usable', async () => {
    expect(names.failure('a')).toBeUndefined()
    const first = find('a')
    answer(new Error('not found'))
    await first
    expect(names.failure('a')?.message).toBe('not found')
    await clock.advance(2_000)
    expect(names.failure('a')).toBeUndefined()
    const second = find('a')
    answer()
    await second
    expect(names.failure('a')).toBeUndefined()
  })
})

describe('names without an answer', () => {
  test('of one namespace share one look-up, so that another namespace has its own', async () => {
    for (const name of ['s1', 's2', 's3']) void find(name, 'silent')
    expect(open.map(({ name }) => name)).toEqual(['s1'])
    const other = find('good', 'shop')
    expect(open.map(({ name }) => name)).toEqual(['s1', 'good'])
    open[1]?.answer(null, [ADDRESS])
    expect(await other).toBe('10.0.0.1')
  })

  test('never exceed the maximum number of look-ups, and the next begins when one ends', () => {
    for (const namespace of ['a', 'b', 'c']) void find(`of-${namespace}`, namespace)
    expect(open).toHaveLength(2)
    answer(new Error('timed out'))
    expect(open.map(({ name }) => name)).toEqual(['of-b', 'of-c'])
  })
})

describe('namespaces with silent name servers', () => {
  const SILENT = ['silent-1', 'silent-2', 'silent-3']
  /** Names of a namespace that wait, and are asked for again as health probes do. */
  const askAll = (namespace: string): void => {
    for (let number = 0; number < 16; number++) void find(`${namespace}-${number}`, namespace)
  }
  /** Answers the open look-up of a name. */
  const answerOf = (name: string, found: readonly LookupAddress[] | Error): void => {
    const at = open.findIndex((one) => one.name === name)
    const [job] = open.splice(at, 1)
    if (found instanceof Error) job?.answer(found, [])
    else job?.answer(null, [...found])
  }
  /** The name servers of all silent namespaces time out. */
  const timeOut = async (): Promise<void> => {
    await clock.advance(10_000)
    for (const { name } of open.filter((one) => one.name.startsWith('silent'))) answerOf(name, new Error('timed out'))
  }

  test('delay a name of another namespace by one look-up at most, and then not at all', async () => {
    for (const namespace of SILENT) askAll(namespace)
    const first = find('good', 'shop')
    await timeOut() // the two that were running
    expect(open.map(({ name }) => name)).toContain('good')
    answerOf('good', [ADDRESS])
    expect(await first).toBe('10.0.0.1')
    for (let round = 0; round < 20; round++) {
      for (const namespace of SILENT) askAll(namespace)
      const next = find(`good-${round}`, 'shop')
      expect(open.map(({ name }) => name)).toContain(`good-${round}`)
      answerOf(`good-${round}`, [ADDRESS])
      expect(await next).toBe('10.0.0.1')
      await timeOut()
    }
  })

  test('wait before the next look-up, and take turns with all others again once their name server answers', async () => {
    askAll('silent-1')
    await timeOut()
    expect(open).toHaveLength(0)
    await clock.advance(2_000)
    expect(open.map(({ name }) => name)).toEqual(['silent-1-1'])
    answerOf('silent-1-1', [ADDRESS])
    expect(open.map(({ name }) => name)).toEqual(['silent-1-2'])
  })

  test('delay no name that another namespace needs too, however many names wait before it', async () => {
    askAll('silent-1')
    await timeOut()
    askAll('silent-1')
    void find('common', 'silent-1')
    const shared = find('common', 'shop')
    expect(open.map(({ name }) => name)).toEqual(['common'])
    answerOf('common', [ADDRESS])
    expect(await shared).toBe('10.0.0.1')
    await clock.advance(10_000) // the address is old by now
    expect(await find('common', 'shop')).toBe('10.0.0.1')
    expect(open.map(({ name }) => name)).toContain('common')
  })

  test('a look-up that finds no file descriptor says nothing about the name', async () => {
    const first = find('a')
    answer(Object.assign(new Error('no descriptor'), { code: 'EMFILE' }))
    expect(await first).toBe('no descriptor')
    expect(names.failure('a')).toBeUndefined()
    void find('a')
    expect(open).toHaveLength(1)
  })
})

test('the names of many namespaces take turns by namespace', () => {
  for (const name of ['a1', 'a2', 'a3']) void find(name, 'a')
  void find('b1', 'b')
  void find('c1', 'c')
  answer()
  expect(open.map(({ name }) => name)).toEqual(['b1', 'a2'])
  answer()
  expect(open.map(({ name }) => name)).toEqual(['a2', 'c1'])
})
