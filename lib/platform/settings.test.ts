import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readEnv, setting, settingRows } from './settings.ts'
import { Misconfigured } from './lifecycle.ts'

const SETTINGS = z.object({
  size: setting(z.string().regex(/^\d+$/, 'is not a number').transform(Number).default(5), { about: 'Size', remedy: 'set it to a number' }),
  placeURL: setting(z.string(), { about: 'A place.', remedy: 'set it to a place' }),
  password: setting(z.string().min(4, 'is too short').optional(), { about: 'A secret.', remedy: 'set it to 4 characters', secret: true }),
})

describe('reading the environment', () => {
  test('gives typed values, with defaults for absent or empty variables', () => {
    expect(readEnv(SETTINGS, { PLACE_URL: 'here', SIZE: '', OTHER: 'x' })).toEqual({ size: 5, placeURL: 'here' })
    expect(readEnv(SETTINGS, { PLACE_URL: 'here', SIZE: '7' })).toMatchObject({ size: 7 })
  })

  test('reports all errors at once: name, reason, remedy', () => {
    const error = thrownBy(() => readEnv(SETTINGS, { SIZE: 'big' }))
    expect(error.lines).toEqual(['SIZE: "big" is not a number; set it to a number', 'PLACE_URL: is not set; set it to a place'])
  })

  test('never prints a secret', () => {
    const error = thrownBy(() => readEnv(SETTINGS, { PLACE_URL: 'x', PASSWORD: 'abc' }))
    expect(error.lines).toEqual(['PASSWORD: the value is too short; set it to 4 characters'])
  })

  test('never prints a value with @, which may be a URL with a password', () => {
    const error = thrownBy(() => readEnv(SETTINGS, { SIZE: 'http://user:hush@host', PLACE_URL: 'x' }))
    expect(error.lines).toEqual(['SIZE: the value is not a number; set it to a number'])
  })
})

test('the table of settings has names, defaults and whether they are required', () => {
  expect(settingRows(SETTINGS).map(({ name, variable, fallback, required }) => [name, variable, fallback, required])).toEqual([
    ['size', 'SIZE', '5', false],
    ['placeURL', 'PLACE_URL', undefined, true],
    ['password', 'PASSWORD', undefined, false],
  ])
})

function thrownBy(run: () => unknown): Misconfigured {
  try {
    run()
  } catch (error) {
    if (error instanceof Misconfigured) return error
  }
  throw new Error('no Misconfigured was thrown')
}
