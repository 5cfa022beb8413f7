import { describe, expect, test } from 'vitest'
import { compose } from './mail.ts'
import { MAILS, renderMail, type MailName, type MailParameters } from './mails.ts'

const SITE = { name: 'Headgate', url: 'https://dashboard.fernwood.example' }
const AT = { at: '2026-11-24T12:03:18Z' }
const CREDIT = { ...AT, amount: '25.00', currency: 'EUR', type: 'TopUp', reference: 'pi_3QxYz' }
const KEY = { ...AT, name: 'docs-search', prefix: 'sk-h-4f9' }
const EXAMPLES: { readonly [Name in MailName]: MailParameters[Name] } = {
  verify: { path: '/verify?token=a.b-c' },
  'known-address': {},
  reset: { path: '/reset/new?token=a1' },
  'new-address': { path: '/verify?token=d.e-f' },
  'address-changed': { ...AT, newAddress: 'maya.okafor@fernwood.example' },
  'password-changed': AT,
  'two-factor-on': AT,
  'two-factor-off': AT,
  'new-backup-codes': AT,
  'provider-linked': { ...AT, provider: 'GitHub' },
  'provider-unlinked': { ...AT, provider: 'GitHub' },
  'wrong-passwords': { tries: 10, minutes: 15 },
  'account-deleted': AT,
  'credit-added': CREDIT,
  'credit-reversed': { ...CREDIT, amount: '-10.50', type: 'Refund', reference: '', isLastToday: true },
  credits: { currency: 'EUR', count: 12, added: '100.00', reversed: '10.50', newest: [CREDIT, { ...CREDIT, type: 'Grant' }] },
  'balance-low': { amount: '4.20', bound: '5.00', currency: 'EUR' },
  'balance-empty': {},
  'key-created': KEY,
  'key-expires': KEY,
  'key-revoked': { ...KEY, at: '' },
  keys: {
    count: 3,
    changes: [
      { ...KEY, change: 'created' },
      { ...KEY, at: '', change: 'revoked' },
    ],
  },
}
const NAMES = Object.keys(MAILS) as MailName[]
const example = (name: MailName, site = SITE) => renderMail(site, name, EXAMPLES[name])
const urls = (text: string): string[] => text.match(/https?:\/\/[^\s"<]+/g) ?? []

describe.each(NAMES)('the mail %s', (name) => {
  test('says the same in text and in HTML, and has at most one link, to the configured dashboard', () => {
    const { text, html } = example(name)
    const links = urls(text)
    expect(links.length).toBeLessThanOrEqual(1)
    expect(urls(html)).toEqual(links)
    expect(html.match(/<a /g) ?? []).toHaveLength(links.length)
    for (const link of links) expect(new URL(link).origin).toBe(SITE.url)
    const plain = html.replaceAll(/<title>[^]*?<\/title>|<[^>]+>/g, '').replaceAll('&quot;', '"')
    for (const paragraph of text.split('\n\n').filter((part) => !/:\nhttp|^--/.test(part))) expect(plain).toContain(paragraph.trim())
  })

  test('has one short line as its subject, and loads nothing', () => {
    const { subject, html } = example(name)
    expect(subject).toMatch(/^[^\r\n]{10,70}$/)
    expect(subject).toContain('Headgate')
    expect(html).not.toMatch(/<(img|link|script|style|iframe)|src=|url\(/)
  })

  test('survives the outbox, which keeps its parameters as JSON', () => {
    expect(renderMail(SITE, name, JSON.parse(JSON.stringify(EXAMPLES[name])))).toEqual(example(name))
  })

  test('is in plain words', () => {
    expect(example(name).text).not.toMatch(/please|oops|!|undefined|Invalid Date|NaN|\$\{/i)
  })
})

test('the links that prove an address carry their token, and say how long they work', () => {
  expect(example('verify').text).toMatch(/24 hours[^]*https:\/\/dashboard\.fernwood\.example\/verify\?token=a\.b-c\n/)
  expect(example('reset').text).toMatch(/once, for 30 minutes[^]*https:\/\/dashboard\.fernwood\.example\/reset\/new\?token=a1\n/)
  expect(example('new-address').text).toMatch(/24 hours[^]*https:\/\/dashboard\.fernwood\.example\/verify\?token=d\.e-f\n/)
})

test('the link of a dashboard below a path stays below the path', () => {
  expect(example('reset', { ...SITE, url: 'http://localhost:8090/headgate/' }).text).toContain(
    'http://localhost:8090/headgate/reset/new?token=a1',
  )
})

test.each(['.evil.example/verify', '@evil.example/', 'https://evil.example/', ''])('a link to %j is refused', (path) => {
  expect(() => renderMail(SITE, 'verify', { path })).toThrow(TypeError)
})

test('a line break never reaches a subject', () => {
  const { subject } = renderMail(SITE, 'provider-linked', { ...AT, provider: 'Git\r\nBcc: all@fernwood.example\u2028\u0000Hub' })
  expect(subject).toBe('Git Bcc: all@fernwood.example Hub was linked to your account at Headgate')
  expect(compose(SITE, { subject: 'x'.repeat(5_000), before: [] }).subject.length).toBeLessThan(300)
})

test('names of others are text, also in HTML', () => {
  const { html, text } = renderMail(SITE, 'provider-linked', { ...AT, provider: '<img src=x>' })
  expect(html).not.toContain('<img')
  expect(html).toContain('&lt;img src=x&gt;')
  expect(text).toContain('<img src=x>')
})

test('the old address learns no more of the new one than its owner needs', () => {
  const { text, html } = example('address-changed')
  expect(text).toContain('changed to m…@fernwood.example')
  expect(text + html).not.toContain('okafor')
})

test('notices say when', () => {
  expect(example('password-changed').text).toContain('on 24 Nov 2026, 12:03 UTC')
})

test('a movement of money says how much, why, and where to look', () => {
  expect(example('credit-added').text).toMatch(/^25\.00 EUR was added [^]*Reason: top-up\. Reference: pi_3QxYz[^]*\/billing\n/)
  expect(example('credit-reversed').text).toMatch(
    /^10\.50 EUR was taken from [^]*Reason: refund\.\n[^]*answer 402[^]*last mail of this kind today/,
  )
  expect(example('credits').text).toMatch(/12 times: 100\.00 EUR was added, and 10\.50 EUR was taken away\.[^]*And 10 more/)
  expect(example('credit-added').text).not.toContain('last mail')
})

test('a key is named by its name and the beginning of its value, as text', () => {
  const { text, html } = renderMail(SITE, 'key-created', { ...KEY, name: '<b>docs</b>\r\nsearch' })
  expect(text).toContain('The API key <b>docs</b> search (sk-h-4f9…) was created')
  expect(html).toContain('&lt;b&gt;docs&lt;/b&gt; search')
  expect(html).not.toContain('<b>')
  expect(example('keys').text).toMatch(/3 changes[^]*docs-search \(sk-h-4f9…\): created on 24 Nov[^]*: revoked\n[^]*And 1 more\./)
})
