import { expect, test } from 'vitest'
import { isTimeZone } from './time-zone.ts'

test.each(['UTC', 'Europe/Berlin', 'Asia/Kathmandu', 'America/Argentina/Buenos_Aires', 'Etc/GMT+12', 'Africa/Cairo'])(
  '%s is a time zone',
  (name) => {
    expect(isTimeZone(name)).toBe(true)
  },
)

test.each(['Europe/Atlantis', 'Berlin', '+01:00', '', 'Europe/Berlin ', 'Local', '../etc/passwd'])('%j is none', (name) => {
  expect(isTimeZone(name)).toBe(false)
  expect(isTimeZone(name), 'the remembered answer is the same').toBe(false)
})
