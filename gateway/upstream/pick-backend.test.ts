import { describe, expect, it } from 'vitest'
import { backendRecord, modelRecord } from '../../test/support/upstream-harness.ts'
import type { BackendRecord } from '#contract/records/model-record.ts'
import { modelEntry, targetsOf, type ModelEntry, type Target } from './model-table.ts'
import { messages } from '../dialects/messages.ts'
import { pickBackend, type PickRules } from './dispatch.ts'
import { canServe, NO_TRANSLATIONS } from './translated-call.ts'

function entryOf(...backends: ReadonlyArray<Partial<BackendRecord>>): ModelEntry {
  return modelEntry(
    modelRecord({ backends: backends.map((changes, i) => backendRecord({ name: `b${i}`, ...changes })) }),
    { allowLoopback: false },
    undefined,
  )
}

const RULES: PickRules = { tried: [], isUsable: () => true, random: () => 0 }
const endpoints = (...last: readonly number[]): Pick<BackendRecord, 'endpoints'> => ({ endpoints: last.map((n) => `10.0.0.${n}:80`) })

/** How often each server is picked with evenly distributed random numbers. */
function shares(entry: ModelEntry, changes: Partial<PickRules> = {}): Record<string, number> {
  const counts: Record<string, number> = {}
  for (let i = 0; i < 100; i++) {
    const picked =
      pickBackend(entry, { ...RULES, random: () => i / 100, ...changes })?.health.origin.replace('http://10.0.0.', '') ?? 'none'
    counts[picked] = (counts[picked] ?? 0) + 1
  }
  return counts
}

function down(entry: ModelEntry, ...at: readonly number[]): void {
  for (const i of at) (targetsOf(entry)[i] as Target).health.isUp = false
}

describe('picking a server', () => {
  it('shares by weight among backends; a weight of 0 gets nothing', () => {
    expect(shares(entryOf({ ...endpoints(1), weight: 75 }, { ...endpoints(2), weight: 25 }, { ...endpoints(3), weight: 0 }))).toEqual({
      '1': 75,
      '2': 25,
    })
  })

  it('gives a weight of 0 nothing, also while no other server is up or left to try', () => {
    const entry = entryOf({ ...endpoints(1), weight: 1 }, { ...endpoints(2), weight: 0 })
    down(entry, 0)
    expect(shares(entry)).toEqual({ '1': 100 })
    expect(shares(entry, { tried: targetsOf(entry).slice(0, 1) })).toEqual({ none: 100 })
    expect(shares(entryOf({ ...endpoints(2), weight: 0 }))).toEqual({ none: 100 })
  })

  it('takes the least loaded endpoint of a backend, and distributes equal loads', () => {
    const entry = entryOf(endpoints(1, 2, 3, 4))
    expect(shares(entry)).toEqual({ '1': 25, '2': 25, '3': 25, '4': 25 })
    for (const target of targetsOf(entry)) target.health.inFlight = 3
    ;(targetsOf(entry)[2] as Target).health.inFlight = 2
    expect(shares(entry)).toEqual({ '3': 100 })
  })

  it('skips ejected endpoints, and a backend that has only such', () => {
    const entry = entryOf(endpoints(1, 2), endpoints(3))
    down(entry, 0)
    expect(Object.keys(shares(entry))).toEqual(['2', '3'])
    down(entry, 1)
    expect(shares(entry)).toEqual({ '3': 100 })
  })

  it('uses ejected endpoints if every endpoint is ejected: ejection makes no model unavailable', () => {
    const entry = entryOf(endpoints(1, 2))
    down(entry, 0, 1)
    expect(Object.keys(shares(entry))).toEqual(['1', '2'])
  })

  it('does not pick a server twice for one request', () => {
    const entry = entryOf(endpoints(1), endpoints(2))
    const [first, second] = targetsOf(entry) as [Target, Target]
    expect(pickBackend(entry, { ...RULES, tried: [first] })).toBe(second)
    expect(pickBackend(entry, { ...RULES, tried: [first, second] })).toBeUndefined()
  })

  it('takes only backends that can serve the call', () => {
    const entry = entryOf({ ...endpoints(1), routes: ['chat/completions'] }, { ...endpoints(2), routes: ['chat/completions', 'messages'] })
    expect(shares(entry, { isUsable: (backend) => canServe(backend, messages, NO_TRANSLATIONS) })).toEqual({ '2': 100 })
    expect(shares(entry, { isUsable: (backend) => canServe(backend, messages) })).toEqual({ '1': 50, '2': 50 })
    expect(shares(entry, { isUsable: ({ name }) => name === 'b0' })).toEqual({ '1': 100 })
  })

  it('finds nothing without servers', () => {
    expect(shares(entryOf({}))).toEqual({ none: 100 })
  })
})
