/** The dashboard is killed at every write of every change that is reported to the owner: a change that was made is reported, and no other. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MortalProcess } from '../../../test/support/crashing-database.ts'
import { chooseAtProvider, manySources, openWithGitHub, signInThrough, turnOnTwoFactor } from '../../../test/support/dashboard-requests.ts'
import { type DashboardWorld, type FormBrowser, PASSWORD, tokenOf, type Visit } from '../../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'
import { totpCode } from '../../../test/support/totp.ts'
import { waitFor } from '../../../test/support/wait-for.ts'
import { LEASE_MS } from '../mail/outbox.ts'

const NEW = 'another quiet heron'
/** More writes than any change has. */
const MANY = 60

/** Does all that comes before the change. @returns the change, and another session of the person if the change ends others */
type Prepare = (email: string) => Promise<(() => Promise<Visit>) | readonly [() => Promise<Visit>, FormBrowser]>

interface Change {
  readonly mail: string
  readonly prepare: Prepare
  /** A part of the person that tells whether the change was made. */
  readonly state: (email: string) => Promise<unknown>
}

const folder = temporaryFolderOfFile()
const file = join(folder, 'dashboard.db')
let world: DashboardWorld
let process: MortalProcess
let people = 0

beforeAll(async () => {
  world = await openWithGitHub({ folder, database: { file } })
  await begin()
})
afterAll(() => world[Symbol.asyncDispose]())

async function begin(): Promise<void> {
  await world.stop().catch(() => undefined)
  process = new MortalProcess()
  await world.start({ database: { file, open: process.open } })
}

function everywhere(owner: FormBrowser): FormBrowser {
  const browser = world.browser(manySources)
  for (const [name, value] of owner.cookies) browser.cookies.set(name, value)
  return browser
}

const person = async (email: string): Promise<FormBrowser> => everywhere(await world.person(email))
const signedIn = async (email: string): Promise<FormBrowser> => {
  const browser = world.browser(manySources)
  await browser.post('/sign-in', { email, password: PASSWORD })
  return browser
}
const userOf = async (email: string) => (await (await world.dashboard.identity.auth.$context).internalAdapter.findUserByEmail(email))?.user
const accountOf = async (email: string, provider: string) => {
  const { internalAdapter } = await world.dashboard.identity.auth.$context
  return (await internalAdapter.findAccounts((await userOf(email))?.id ?? '')).find(({ providerId }) => providerId === provider)
}
const hash = async (email: string) => (await accountOf(email, 'credential'))?.password
const link = async (email: string) => (await accountOf(email, 'github'))?.accountId
const factor = async (email: string) => {
  const { adapter } = await world.dashboard.identity.auth.$context
  return await adapter.findOne<{ backupCodes: string }>({
    model: 'twoFactor',
    where: [{ field: 'userId', value: (await userOf(email))?.id ?? '' }],
  })
}
const isOn = async (email: string) => ((await userOf(email)) as { twoFactorEnabled?: boolean } | undefined)?.twoFactorEnabled === true

/** @returns the way back from the provider */
async function atProvider(browser: FormBrowser, email: string): Promise<string> {
  const { url } = (await browser.call('POST', '/api/providers/github/link', {})).json()
  return await chooseAtProvider(new URL(url), { email })
}

const CHANGES: Readonly<Record<string, Change>> = {
  'a new password': {
    mail: 'password-changed',
    state: hash,
    prepare: async (email) => {
      const browser = await person(email)
      return [() => browser.call('POST', '/api/password', { current: PASSWORD, next: NEW }), await signedIn(email)]
    },
  },
  'a first password': {
    mail: 'password-changed',
    state: hash,
    prepare: async (email) => {
      const browser = world.browser(manySources)
      await signInThrough(browser, 'github', { email })
      const other = world.browser(manySources)
      await signInThrough(other, 'github', { email })
      return [() => browser.call('POST', '/api/password', { next: NEW }), other]
    },
  },
  'a reset password': {
    mail: 'password-changed',
    state: hash,
    prepare: async (email) => {
      await world.person(email)
      await world.browser().post('/reset', { email })
      const token = tokenOf((await world.mails.wait(email, 'reset')).link)
      return [() => world.browser().post('/reset/new', { token, password: NEW }), await signedIn(email)]
    },
  },
  'two-factor on': {
    mail: 'two-factor-on',
    state: isOn,
    prepare: async (email) => {
      const browser = await person(email)
      const { secret } = (await browser.call('POST', '/api/two-factor/start', {})).json()
      return [() => browser.call('POST', '/api/two-factor/confirm', { code: totpCode(secret, Date.now()) }), await signedIn(email)]
    },
  },
  'two-factor off': {
    mail: 'two-factor-off',
    state: isOn,
    prepare: async (email) => {
      const browser = await person(email)
      await turnOnTwoFactor(browser)
      return () => browser.call('POST', '/api/two-factor/off', {})
    },
  },
  'new backup codes': {
    mail: 'new-backup-codes',
    state: async (email) => (await factor(email))?.backupCodes,
    prepare: async (email) => {
      const browser = await person(email)
      await turnOnTwoFactor(browser)
      return () => browser.call('POST', '/api/two-factor/backup-codes', {})
    },
  },
  'a linked provider': {
    mail: 'provider-linked',
    state: link,
    prepare: async (email) => {
      const browser = await person(email)
      const back = await atProvider(browser, `hub-${email}`)
      return () => browser.get(back)
    },
  },
  'an unlinked provider': {
    mail: 'provider-unlinked',
    state: link,
    prepare: async (email) => {
      const browser = await person(email)
      await browser.get(await atProvider(browser, `hub-${email}`))
      return () => browser.call('DELETE', '/api/providers/github')
    },
  },
  'a new address': {
    mail: 'address-changed',
    state: async (email) => (await userOf(email)) === undefined,
    prepare: async (email) => {
      const browser = await person(email)
      await browser.call('POST', '/api/email', { email: `new-${email}` })
      const token = tokenOf((await world.mails.wait(`new-${email}`, 'new-address')).link)
      return () => browser.post('/verify', { token })
    },
  },
}

/** @returns whether the process died, whether the change was made, and how many mails say so */
async function killed({ mail, prepare, state }: Change, write: number, when: 'before' | 'after') {
  people += 1
  const email = `person-${people}@notice.example`
  const prepared = await prepare(email)
  const [change, other] = typeof prepared === 'function' ? [prepared] : prepared
  await noMailWaits()
  const before = await state(email)
  process.dieAtNext(write, when)
  await change().catch(() => undefined)
  const { isDead } = process
  if (isDead) {
    await begin()
    world.clock.move(LEASE_MS)
    await world.dashboard.sweep()
  } else process.dieAtNext(1_000_000, 'after')
  await noMailWaits()
  const { outboxRows } = world.dashboard.identity
  expect(await outboxRows.held({ olderThanMs: 0, limit: 10 }), 'held for ever').toEqual([])
  world.clock.move(Date.now() - world.clock.now())
  const isMade = (await state(email)) !== before
  if (other) expect((await other.get('/api/me')).status, 'the other session').toBe(isMade ? 401 : 200)
  return { isDead, isMade, mails: world.mails.of(email, mail).length }
}

async function noMailWaits(): Promise<void> {
  await waitFor('an empty outbox', async () => process.isDead || (await world.dashboard.identity.outboxRows.waiting()) === 0, {
    everyMs: 5,
  })
}

test.each(Object.keys(CHANGES))(
  'a kill at any write of %s leaves a mail about a change that was made, and none about one that was not',
  async (name) => {
    const change = CHANGES[name]!
    const seen = { made: false, notMade: false }
    for (const when of ['before', 'after'] as const)
      for (let write = 1; ; write += 1) {
        expect(write).toBeLessThan(MANY)
        const { isDead, isMade, mails } = await killed(change, write, when)
        const writes = process.writes.slice(-3).join('; ')
        expect([isMade, mails > 0], `${name}, killed ${when} write ${write}: ${writes}`).toEqual([isMade, isMade])
        if (isDead) seen[isMade ? 'made' : 'notMade'] = true
        else {
          expect([isMade, mails]).toEqual([true, 1])
          break
        }
      }
    expect(seen, 'deaths after and before the change').toEqual({ made: true, notMade: true })
  },
)
