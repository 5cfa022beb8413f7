/** `/dev/mail` of `make run`: the mails that the dashboard has written into the state folder. In a cluster there is no such page. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import PostalMime from 'postal-mime'
import { page } from '../dashboard/server/http/exchange.ts'
import type { Site } from '../dashboard/server/pages/layout.ts'
import { mailboxPage, type MailboxMail } from '../dashboard/server/pages/mailbox.ts'
import type { Route } from '../dashboard/server/routes/route.ts'

const SUFFIX = '.eml'
/** Mails on the page; older ones stay as files. */
const MOST = 50

export function mailboxRoutes(folder: string, site: Site): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/dev/mail',
      access: 'anyone',
      handler: async () => page(mailboxPage(site, { mails: await readMails(folder) })),
    },
    {
      method: 'GET',
      path: '/dev/mail/:mail',
      access: 'anyone',
      handler: async (_deps, { params }) => page(mailboxPage(site, { mails: await readMails(folder), shown: params['mail'] })),
    },
  ]
}

/** The newest mails first. The name of a file begins with its time. */
async function readMails(folder: string): Promise<readonly MailboxMail[]> {
  const names = await readdir(folder).catch(() => [])
  const newest = names
    .filter((name) => name.endsWith(SUFFIX) && !name.startsWith('.'))
    .toSorted()
    .toReversed()
    .slice(0, MOST)
  return await Promise.all(newest.map((name) => readMail(join(folder, name), name.slice(0, -SUFFIX.length))))
}

async function readMail(path: string, id: string): Promise<MailboxMail> {
  const mail = await PostalMime.parse(await readFile(path))
  const to = (mail.to ?? []).map(({ address }) => address ?? '').join(', ')
  return { id, to, subject: mail.subject ?? '', at: new Date(mail.date ?? 0), text: mail.text ?? '' }
}
