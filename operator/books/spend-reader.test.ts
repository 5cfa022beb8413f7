import { expect, test } from 'vitest'
import { SubjectSchedule } from './spend-reader.ts'

/** Reads what is due. */
function read(schedule: SubjectSchedule, nowMs: number): readonly string[] {
  const due = schedule.due(nowMs)
  schedule.wasRead(due, nowMs)
  return due
}

test('a spending subject is read every 3 s, an idle subject every 5 s, and an unknown name never', () => {
  const schedule = new SubjectSchedule()
  schedule.add('busy', 0)
  schedule.add('idle', 0)
  const reads: Record<string, number[]> = { busy: [], idle: [], forged: [] }
  for (let nowMs = 0; nowMs <= 20_000; nowMs += 1_000) {
    schedule.name('busy', nowMs)
    schedule.name('forged', nowMs)
    for (const uid of read(schedule, nowMs)) reads[uid]?.push(nowMs / 1_000)
  }
  expect(reads).toEqual({ busy: [0, 3, 6, 9, 12, 15, 18], idle: [0, 5, 10, 15, 20], forged: [] })
})

test('idle subjects beyond the bound of a turn wait for the next turn, and spending subjects go first', () => {
  const schedule = new SubjectSchedule()
  for (let at = 0; at < 5_000; at += 1) schedule.add(`s${at}`, 0)
  expect(read(schedule, 0)).toHaveLength(5_000)
  schedule.name('s4999', 5_000)
  const rounds = [5_000, 6_000, 7_000].map((nowMs) => read(schedule, nowMs))
  expect(rounds[0]?.[0]).toBe('s4999')
  expect(new Set(rounds.flat()).size).toBe(5_000)
  expect(Math.max(...rounds.map((round) => round.length))).toBe(2_001)
})

test('a failed read is due again, except for a deleted subject', () => {
  const schedule = new SubjectSchedule()
  schedule.add('one', 0)
  schedule.add('two', 0)
  expect(schedule.due(500)).toEqual(['one', 'two'])
  schedule.delete('two')
  schedule.wasRead(['two'], 550)
  expect(read(schedule, 600)).toEqual(['one'])
})

test('a read with a shortest wait is not due earlier', () => {
  const schedule = new SubjectSchedule()
  schedule.add('low', 0)
  read(schedule, 0)
  schedule.name('low', 0, 2_000)
  expect([1_000, 2_000].map((nowMs) => read(schedule, nowMs))).toEqual([[], ['low']])
})
