import { describe, expect, it } from 'vitest'
import { appCodeError, emailError, isSameEmail, newPasswordError, plainCode } from './checks.ts'

describe('an email', () => {
  it.each(['maya@fernwood.example', ' maya@fernwood.example ', 'a+b@x.co', 'm@a.b.c', 'ü@ü.example'])('%j is one', (email) => {
    expect(emailError(email)).toBeUndefined()
  })

  it.each(['', 'maya', 'maya@', '@x.example', 'maya@fernwood', 'a b@x.example', 'a@b@x.example', 'a@x.'])('%j is none', (email) => {
    expect(emailError(email)).toContain('whole address')
  })

  it('is the same in capital letters and with spaces around', () => {
    expect([isSameEmail(' Maya@Fernwood.example', 'maya@fernwood.example '), isSameEmail('maya@x.example', 'maya@y.example')]).toEqual([
      true,
      false,
    ])
  })
})

it.each([
  [11, 'at least 12'],
  [12, undefined],
  [128, undefined],
  [129, 'at most 128'],
])('a new password of %i characters: %s', (length, error) => {
  const said = newPasswordError('p'.repeat(length))
  if (error === undefined) expect(said).toBeUndefined()
  else expect(said).toContain(error)
})

describe('a code', () => {
  it.each(['123456', ' 123 456 ', '123-456'])('%j is one, as an app or a person groups it', (code) => {
    expect([appCodeError(code), plainCode(code)]).toEqual([undefined, '123456'])
  })

  it.each(['', '12345', '1234567', '12345a', '１２３４５６'])('%j is none', (code) => {
    expect(appCodeError(code)).toContain('six digits')
  })
})
