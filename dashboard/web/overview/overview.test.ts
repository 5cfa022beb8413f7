/** The words of Overview for each state of the Account, as a browser gets them. */
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import type { AccountView, Me } from '../../server/page-data/people.ts'
import { OverviewOf } from './overview.tsx'
import { standingOf } from './standing-of-account.ts'

const known = { name: 'u-4kq7', plan: 'team', isReady: true } as const
const ME: Me = {
  person: {
    id: 'p1',
    name: 'Maya',
    email: 'maya@x.example',
    createdAt: '2026-11-27T00:00:00Z',
    role: 'owner',
    hasPassword: true,
    twoFactor: { isOn: false },
  },
  account: { state: 'Active', ...known },
  installation: { apiURL: 'https://models.x.example', providers: [], hasPasswords: true },
}

function shown(account: AccountView, more: Partial<Me> = {}): string {
  return renderToStaticMarkup(createElement(OverviewOf, { me: { ...ME, account, ...more } }))
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
}

describe('Overview', () => {
  it('of an Active account has both base URLs, and its plan', () => {
    const text = shown({ state: 'Active', ...known })
    expect(text).toContain('https://models.x.example/v1')
    expect(text).toContain('https://models.x.example Copy')
    expect(text).toContain('Plan team')
    expect(text).toContain('State Active')
  })

  it('of a Suspended account says what calls answer and whom to ask, and offers no call', () => {
    const text = shown({ state: 'Suspended', ...known })
    expect(text).toContain('Calls with its keys answer 401. Ask your administrator')
    expect(text).toContain('u-4kq7')
    expect(text).not.toContain('Call a model')
  })

  it('of a Closed account says that its keys no longer work', () => {
    expect(shown({ state: 'Closed' })).toContain('Its keys no longer work')
  })

  it('of an account that is not known says why, and that the page checks again', () => {
    const text = shown({ state: 'Unknown' })
    expect(text).toContain('The cluster does not answer the dashboard, so the state of your account is not known here.')
    expect(text).toContain('This page checks again')
    expect(text).not.toContain('Your account is ready')
  })

  it('greets a person without a name', () => {
    expect(shown(ME.account, { person: { ...ME.person, name: '' } })).toMatch(/^ ?Welcome Verify/)
  })

  it('shows a name with HTML as text', () => {
    expect(
      renderToStaticMarkup(createElement(OverviewOf, { me: { ...ME, person: { ...ME.person, name: '<script>x</script>' } } })),
    ).not.toContain('<script>')
  })
})

it('an account that is not ready says why, as a whole sentence', () => {
  const { isUsable, consequence } = standingOf({ state: 'Active', ...known, isReady: false, message: 'Plan "team" does not exist' })
  expect([isUsable, consequence]).toEqual([false, 'Plan "team" does not exist. This page checks again every few seconds.'])
})
