/** No answer tells who has an account: equal status, headers and body, equal work, and no mail to strangers. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { manySources, send } from '../../../test/support/dashboard-requests.ts'
import { DashboardWorld, FormBrowser, PASSWORD, type Visit } from '../../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'

/** Names of the same length, so that bodies that show the address have the same length too. */
const KNOWN = 'known@x.example'
const UNVERIFIED = 'apple@x.example'
const UNKNOWN = 'melon@x.example'
const WRONG = 'not the password of anybody'

let hours = 0

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => {
  world = await DashboardWorld.open({ folder })
  await world.person(KNOWN)
  await world.browser().post('/sign-up', { email: UNVERIFIED, password: PASSWORD })
  await world.mails.wait(UNVERIFIED, 'verify')
})
afterEach(() => world.clock.move(Date.now() - world.clock.now()))
afterAll(() => world[Symbol.asyncDispose]())

/** The answer without what differs at each request, and with the address replaced. Of cookies, their form counts. */
function seen({ status, headers, text }: Visit, email: string): unknown {
  const plain = (value: string): string => value.replaceAll(email, 'ADDRESS').replaceAll(encodeURIComponent(email), 'ADDRESS')
  const kept = [...headers].filter(([name]) => !['date', 'x-request-id', 'set-cookie', 'etag'].includes(name))
  const cookies = headers.getSetCookie().map((line) => line.replace(/=([^;]*)/, (_, value: string) => `=<${value.length}>`))
  return { status, headers: kept.map(([name, value]) => [name, plain(value)]), cookies, text: withoutSeconds(plain(text)) }
}

/** The countdown to another mail: one of these answers may come a second later than the other. */
function withoutSeconds(text: string): string {
  return text.replace(/data-countdown-seconds="\d+"/, '').replace(/Send again in [\d:]+</, '')
}

async function answers(path: string, fields: (email: string) => Readonly<Record<string, string>>, emails: readonly string[]) {
  const all = []
  for (const email of emails) all.push(seen(await new FormBrowser(world.origin, manySources).post(path, fields(email)), email))
  return all
}

/** How many passwords are hashed while `task` runs. */
async function hashesOf(task: () => Promise<unknown>): Promise<number> {
  const { hashes } = world.dashboard.identity
  let count = 0
  const run = hashes.run.bind(hashes)
  hashes.run = async (work) => {
    count += 1
    return await run(work)
  }
  try {
    await task()
  } finally {
    hashes.run = run
  }
  return count
}

describe.each([
  ['a sign-up', '/sign-up', (email: string) => ({ email, password: WRONG })],
  ['a sign-in with a wrong password', '/sign-in', (email: string) => ({ email, password: WRONG })],
  ['a request for a new password', '/reset', (email: string) => ({ email })],
  ['a request for another link', '/check-your-mail', (email: string) => ({ email })],
])('%s', (_, path, fields) => {
  beforeAll(() => void (hours += 1))

  test('has one answer for addresses with an account, without a verified one, and without any', async () => {
    world.clock.move(hours * 3_600_000) // a mail may be sent again
    const [known, unverified, unknown] = await answers(path, fields, [KNOWN, UNVERIFIED, UNKNOWN])
    expect(unverified).toEqual(known)
    expect(unknown).toEqual(known)
    const repeated = await answers(path, fields, [KNOWN, UNVERIFIED, UNKNOWN])
    expect(repeated).toEqual([repeated[0], repeated[0], repeated[0]])
  })
})

describe('the work behind an answer', () => {
  test.each([
    ['a sign-up', '/sign-up'],
    ['a sign-in', '/sign-in'],
  ])('of %s is one hash for every address', async (_, path) => {
    world.clock.move(24 * 3_600_000)
    const counts = []
    for (const email of [KNOWN, UNVERIFIED, 'other@x.example', UNKNOWN])
      counts.push(await hashesOf(() => new FormBrowser(world.origin, manySources).post(path, { email, password: WRONG })))
    expect(counts).toEqual([1, 1, 1, 1])
  })

  test('of a sign-in is one hash, too, for an unverified person with the right password and for an address that is blocked', async () => {
    const password = 'mallards doze on ice'
    await world.browser().post('/sign-up', { email: 'fresh@x.example', password })
    const browser = new FormBrowser(world.origin, manySources)
    const visit = async (email: string) => await browser.post('/sign-in', { email, password })
    expect(await hashesOf(() => visit('fresh@x.example'))).toBe(1)
    expect(seen(await visit('fresh@x.example'), 'fresh@x.example')).toEqual(seen(await visit('never@x.example'), 'never@x.example'))
    for (let i = 0; i < 10; i++) await visit(KNOWN)
    expect(await hashesOf(() => visit(KNOWN))).toBe(1)
    await world.dashboard.identity.throttle.clear({ name: 'password', most: 10, windowMs: 900_000 }, KNOWN)
  })

  test('sends no mail to people who have no account', async () => {
    await new FormBrowser(world.origin, manySources).post('/reset', { email: 'strange@x.example' })
    await new FormBrowser(world.origin, manySources).post('/check-your-mail', { email: 'strange@x.example' })
    await new FormBrowser(world.origin, manySources).post('/sign-in', { email: 'strange@x.example', password: WRONG })
    await world.person('last@x.example')
    expect(world.mails.mails.filter(({ to }) => to === 'strange@x.example')).toEqual([])
  })
})

describe('links that do not work', () => {
  test('have one answer, whatever is wrong with them', async () => {
    const texts = new Set<string>()
    for (const path of ['/verify', '/verify?token=x', `/verify?token=${Buffer.from(KNOWN).toString('base64url')}`])
      texts.add((await send(world, 'GET', path)).text)
    expect(texts.size).toBe(1)
    const resets = new Set<string>()
    for (const path of ['/reset/new', '/reset/new?token=x', `/reset/new?token=${'y'.repeat(24)}`])
      resets.add((await send(world, 'GET', path)).text)
    expect(resets.size).toBe(1)
  })
})
