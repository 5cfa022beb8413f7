import { expect, test } from 'vitest'
import { highest, isLower, LEVELS } from './level.ts'

test('urgent comes before changes, changes before new objects, and the background last', () => {
  for (const [at, level] of LEVELS.entries()) for (const [other, than] of LEVELS.entries()) expect(isLower(level, than)).toBe(at > other)
  expect(LEVELS).toEqual(['urgent', 'change', 'create', 'background'])
  expect([highest('background', 'change'), highest('urgent', 'create'), highest('create', 'create')]).toEqual([
    'change',
    'urgent',
    'create',
  ])
})
