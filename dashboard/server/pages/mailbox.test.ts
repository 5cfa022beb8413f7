import { expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import { verifyMail } from '../mail/templates/link-mails.ts'
import type { Site } from './layout.ts'
import { mailboxPage, type MailboxMail } from './mailbox.ts'

const SITE: Site = { publicHost: 'host', providers: [], hasPasswords: true, styles: [], scripts: [] }
const mail = (id: string, change: Partial<MailboxMail> = {}): MailboxMail => ({
  id,
  to: 'maya@fernwood.example',
  subject: `Mail ${id}`,
  at: new Date('2026-11-24T12:03:18Z'),
  text: 'Hello',
  ...change,
})
const page = (mails: readonly MailboxMail[], shown?: string): string => tidyHTML(mailboxPage(SITE, { mails, shown }))

test('mails are listed newest first with subject, address and time; of equal times, the later one first', () => {
  const mails = [mail('first'), mail('old', { at: new Date('2026-11-24T12:00:00Z') }), mail('second')]
  const text = page(mails)
  expect(text.match(/href="\/dev\/mail\/\w+"/g)).toEqual(['href="/dev/mail/second"', 'href="/dev/mail/first"', 'href="/dev/mail/old"'])
  expect(text).toMatch(/>Mail old<\/a><br\/> maya@fernwood.example, <time[^>]*>24 Nov 2026, 12:00:00 UTC<\/time>/)
  expect(mails.map(({ id }) => id)).toEqual(['first', 'old', 'second'])
})

test('the link of a mail can be clicked', () => {
  const { subject, text } = verifyMail({ name: 'Headgate', url: 'http://localhost:8090' }, { path: '/verify?token=a.b&x=1' })
  const shown = page([mail('1', { subject, text })], '1')
  expect(shown).toContain('<h1>Verify your email for Headgate</h1>')
  expect(shown).toContain(
    'Verify email:<br/><a href="http://localhost:8090/verify?token=a.b&amp;x=1">http://localhost:8090/verify?token=a.b&amp;x=1</a></p>',
  )
})

test('mails of others stay text', () => {
  const hostile = '<script>alert(1)</script> javascript:alert(1)\r\n\r\nhttps://x.example/"><img src=x>'
  const shown = page([mail('<1>', { subject: hostile, to: hostile, text: hostile })], '<1>')
  expect(shown).not.toMatch(/<script>|<img|href="javascript/)
  expect(shown).toContain('<a href="https://x.example/">https://x.example/</a>&quot;&gt;')
})

test('an empty box, and a mail that does not exist, show the list', () => {
  expect(page([])).toContain('No mail yet.')
  expect(page([mail('1')], '2')).toContain('<h1>Mail</h1>')
})
