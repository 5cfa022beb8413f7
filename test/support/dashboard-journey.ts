/**
 * A person who signs up, verifies, signs in, changes the address and deletes the account, and who tries again as people do when a page does not
 * come. The process of the dashboard may die at any write; the next process starts on the same file, and sweeps once.
 */
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import type { Account } from '#api/account.ts'
import { accounts } from '#api/resources.ts'
import { LEASE_MS } from '../../dashboard/server/mail/outbox.ts'
import type { MailTransport } from '../../dashboard/server/mail/transport.ts'
import { type DeathAt, MortalProcess } from './crashing-database.ts'
import { DashboardWorld, type DashboardWorldOptions, type FormBrowser, PASSWORD, tokenOf, type Visit } from './dashboard-world.ts'
import { PortAround } from './fake-kube-port.ts'
import { waitFor } from './wait-for.ts'

export const FIRST = 'maya@fernwood.example'
export const SECOND = 'maya@otherwood.example'
/** Tries of a person at one step. */
const TRIES = 6
/** A minute between two mails to one address, ms. */
const NEXT_MAIL_MS = 61_000
const READS: ReadonlySet<string> = new Set(['get', 'list'])

export class DashboardJourney implements AsyncDisposable {
  readonly #folder: string
  #world: DashboardWorld | undefined
  #process: MortalProcess
  #browser: FormBrowser | undefined
  /** Since the last wait for a mail. */
  #died = false
  /** Writes until the death, or of the whole journey without one. */
  get writes(): readonly string[] {
    return this.#former ?? this.#process.writes
  }

  #former: readonly string[] | undefined

  constructor(folder: string, death?: DeathAt) {
    this.#folder = folder
    this.#process = new MortalProcess(death)
  }

  get world(): DashboardWorld {
    if (this.#world === undefined) throw new Error('the journey has not begun')
    return this.#world
  }

  async begin(): Promise<void> {
    this.#world = await DashboardWorld.prepare({ folder: this.#folder })
    await this.#start().catch(() => undefined) // a death while the tables are made
    await this.#surviveDeath()
  }

  async signUp(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { status } = await this.#ask((browser) => browser.post('/sign-up', { email: FIRST, password: PASSWORD }))
      if (await this.#mailed(FIRST, 'verify')) return
      this.world.clock.move(NEXT_MAIL_MS)
      if (status !== 303) continue
      await this.#ask((browser) => browser.post('/check-your-mail', { email: FIRST }))
      if (await this.#mailed(FIRST, 'verify')) return
      this.world.clock.move(NEXT_MAIL_MS)
    }
    throw new Error('the mail for the verification never came')
  }

  async verify(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const token = this.#token(FIRST, 'verify')
      const { status } = await this.#ask((browser) => browser.post('/verify', { token }))
      if (status === 422) await this.#ask((browser) => browser.post('/verify', { token, password: PASSWORD })) // the answer to the sign-up was lost
      if (await this.#isIn(FIRST)) return
    }
    throw new Error('the address could not be verified')
  }

  async signOutAndIn(): Promise<void> {
    await this.#ask((browser) => browser.call('POST', '/api/sign-out', {}))
    if (!(await this.#isIn(FIRST))) throw new Error('the person could not sign in')
  }

  async changeEmail(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      await this.#ask((browser) => browser.call('POST', '/api/email', { email: SECOND }))
      if (await this.#mailed(SECOND, 'new-address')) break
      this.world.clock.move(NEXT_MAIL_MS)
      await this.#isIn(FIRST)
    }
    for (let tries = 0; tries < TRIES; tries += 1) {
      await this.#ask((browser) => browser.post('/verify', { token: this.#token(SECOND, 'new-address') }))
      const visit = await this.#ask((browser) => browser.get('/api/me'))
      if (visit.status === 200 && visit.json().person.email === SECOND) return
      if (!(await this.#isIn(FIRST)) && (await this.#isIn(SECOND))) return
    }
    throw new Error('the address could not be changed')
  }

  async delete(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      await this.#ask((browser) => browser.call('POST', '/api/account/delete', { email: SECOND }))
      if (!(await this.#isIn(SECOND))) return
    }
    throw new Error('the account could not be deleted')
  }

  /** All that the cluster has. */
  async accounts(): Promise<readonly Account[]> {
    return await this.world.store.list(accounts, '')
  }

  /** Whether no mail waits. */
  async outboxIsEmpty(): Promise<void> {
    await waitFor('an empty outbox', async () => {
      await this.#surviveDeath()
      return (await this.world.dashboard.identity.outboxRows.waiting()) === 0
    })
  }

  /** Rows by table, after the end of the process. */
  async rows(): Promise<Readonly<Record<string, number>>> {
    await this.world.stop()
    const file = new DatabaseSync(join(this.#folder, 'dashboard.db'), { readOnly: true })
    const countOf = (table: string): number => Number(file.prepare(`select count(*) as n from "${table}"`).get()?.['n'])
    const tables = ['user', 'account', 'session', 'headgateMember', 'headgateOutbox']
    const counts = Object.fromEntries(tables.map((table) => [table, countOf(table)]))
    file.close()
    return counts
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#world?.[Symbol.asyncDispose]()
  }

  /** Signed in as this person, at once or by the password. */
  async #isIn(email: string): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const me = await this.#ask((browser) => browser.get('/api/me'))
      if (me.status === 200) return me.json().person.email === email
      const signIn = await this.#ask((browser) => browser.post('/sign-in', { email, password: PASSWORD }))
      if (signIn.status === 403) return false
    }
    throw new Error('the person can neither sign in nor is refused')
  }

  /** A visit from an address of its own, since limits count by address. A death behind it brings the next process. */
  async #ask(visit: (browser: FormBrowser) => Promise<Visit>): Promise<Visit> {
    const browser = this.world.browser()
    for (const [name, value] of this.#browser?.cookies ?? []) browser.cookies.set(name, value)
    this.#browser = browser
    const answer = await visit(browser)
    if (await this.#surviveDeath()) return answer
    if (answer.status === 403 && answer.text.includes('"confirm"')) {
      await this.#ask((own) => own.call('POST', '/api/confirm', { password: PASSWORD }))
      return await this.#ask(visit)
    }
    if (answer.status >= 500 || answer.status === 429)
      throw new Error(`${answer.status} without a death: ${answer.text}\n${this.world.lines.slice(-5).join('')}`)
    return answer
  }

  /** Waits for a mail that the last request caused. @returns false if the process died with the mail */
  async #mailed(to: string, name: string): Promise<boolean> {
    const came = (): boolean => this.world.mails.of(to, name).length > 0
    await waitFor(`the mail ${name} or a death`, () => came() || this.#process.isDead || this.#died, { deadlineMs: 10_000, everyMs: 5 })
    await this.#surviveDeath()
    this.#died = false
    await this.outboxIsEmpty()
    return came()
  }

  #token(to: string, name: string): string {
    const text = this.world.mails.of(to, name).at(-1)?.text ?? ''
    return tokenOf(/https?:\/\/\S+/.exec(text)?.[0] ?? '')
  }

  /** @returns whether the process had died */
  async #surviveDeath(): Promise<boolean> {
    if (!this.#process.isDead) return false
    this.#died = true
    this.#former = [...this.#process.writes]
    await this.world.stop().catch(() => undefined)
    this.#process = new MortalProcess()
    await this.#start()
    this.world.clock.move(LEASE_MS) // the dead process had claimed the mail that it was about to send
    await this.world.dashboard.sweep()
    return true
  }

  async #start(): Promise<void> {
    await this.world.start(mortal(this.#process, this.world, join(this.#folder, 'dashboard.db')))
  }
}

/** All that a process writes to: the file, the API server and the mail server. */
function mortal(process: MortalProcess, { mails }: DashboardWorld, file: string): Partial<DashboardWorldOptions> {
  const transport: MailTransport = {
    send: (letter) => process.asyncWrite(`mail ${letter.name}`, () => mails.send(letter)),
    close: () => undefined,
  }
  return {
    database: { file, open: process.open },
    transport,
    kube: (store) =>
      new PortAround(store, ({ verb, name }, run) =>
        READS.has(verb) ? Promise.resolve().then(() => process.read(run)) : process.asyncWrite(`${verb} ${name}`, run),
      ),
  }
}
