/** `make bench` and `make soak` do not run before every commit, so the choice of parts and the arithmetic of a comparison are tested here. */
import { expect, test } from 'vitest'
import { summary, type Window } from '../bench/compare.ts'
import { benchBody } from '../bench/gateways.ts'
import { chosenParts } from '../bench/main.ts'
import { breaks, quantile, shown } from '../bench/part.ts'
import { codeSpans, rowsOf, sectionOf } from '../support/markdown-page.ts'
import { read } from '../support/documents.ts'

test('PART chooses programs and parts, and a wrong name is answered with all names', () => {
  const names = (text: string): string[] => chosenParts(text).map(({ name }) => name)
  expect(names('operator 1.5k-c32')).toEqual(['storm', 'issuing', 'spend', 'accounts', 'credits', 'tenants', 'scale', '1.5k-c32'])
  expect(names('dashboard')).toEqual(['sign-ups', 'customers'])
  expect(() => chosenParts('strom')).toThrow('PART: there is no "strom"; choose of requests (1.5k-c32')
  const rows = rowsOf(sectionOf(read('test/bench/README.md'), '## Parts'), 'program')
  expect(rows.flatMap(({ part = '' }) => codeSpans(part))).toEqual(names(''))
})

test('a comparison is the median of the rounds beside its control, and wrong answers void it', () => {
  const window = (cpu: number, wrong = 0): Window => ({ cpu, p99Ms: 2, callsPerRequest: 0.5, wrong })
  const round = (cpu: number) => ({ control: [window(90), window(110)], measured: [window(cpu), window(cpu)] }) as const
  const { cells, isMissed } = summary({ name: 'a', bounds: { cpu: { must: 1.1 } } }, [round(100), round(130), round(120)])
  expect(cells.slice(0, 5)).toEqual(['a', '1.200', '(1.000, 1.300)', '0.818', '100.0'])
  expect(isMissed).toBe(true)
  expect(summary({ name: 'a', bounds: {} }, [{ ...round(1), control: [window(1, 0.5), window(1)] }]).isMissed).toBe(true)
})

test('bodies have the size that a part names, and a value that is not a number breaks its bound', () => {
  expect(Buffer.byteLength(benchBody('stream', 1_500))).toBe(1_500)
  expect(Buffer.byteLength(benchBody('plain', 1_500, 'messages'))).toBe(1_500)
  expect(quantile([10, 30, 20], 0.5)).toBe(20)
  expect([breaks({ must: 1 }, Number.NaN), breaks({ aim: 1 }, 2)]).toEqual([true, false])
  expect(shown(1.5, { must: 2, aim: 1 }, 's')).toBe('1.5 s (must <= 2: held; aim <= 1: MISSED)')
})
