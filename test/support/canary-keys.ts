/** The life of a key in a real browser. Each value that the pages hand out is noted as a secret. */
import type { Page, Response } from 'playwright-core'
import { ask } from './ask.ts'
import { TestBrowser } from './browser.ts'
import { Canaries } from './canaries.ts'
import type { DashboardSite } from './dashboard-site.ts'
import type { FormBrowser } from './dashboard-world.ts'
import { KeyPages, topUp } from './key-pages.ts'
import type { Lab } from './lab.ts'

const NAME = 'canary-key'
/** Answers that hand out a value, once. */
const HANDED_OUT = /\/api\/keys(\/[^/]+\/replace)?$/
const KEPT = `(async () => {
  const caches = 'caches' in window ? await window.caches.keys() : []
  const databases = await indexedDB.databases()
  const typed = [...document.querySelectorAll('input, textarea')].map((field) => field.value)
  return JSON.stringify([{ ...sessionStorage }, { ...localStorage }, history.state, location.href, document.cookie, typed, caches, databases])
})()`

export interface CanaryKeyOptions {
  readonly lab: Lab
  readonly site: DashboardSite
  /** A person who is signed in. */
  readonly owner: FormBrowser
  /** A model that the key may call. */
  readonly model: string
  readonly canaries: Canaries
}

export class CanaryKeyLife {
  /** The two values alone. */
  readonly values = new Canaries()
  /** What the browser kept after each dialog was closed: page, storage, history, fields, cookies. */
  readonly kept: string[] = []
  /** Heads of all answers to scripts, and bodies of those that hand out no value. */
  readonly answers: string[] = []
  /** Bodies of those that do. */
  readonly handedOut: string[] = []
  /** Of the calls, in order. */
  readonly statuses: number[] = []
  readonly #options: CanaryKeyOptions
  readonly #reading: Promise<void>[] = []

  private constructor(options: CanaryKeyOptions) {
    this.#options = options
  }

  /** Pays, makes a key, calls, replaces the value, calls, revokes the key, and calls. */
  static async lived(options: CanaryKeyOptions): Promise<CanaryKeyLife> {
    const life = new CanaryKeyLife(options)
    const browser = await TestBrowser.start()
    await life.#live(await life.#openPage(browser))
    await Promise.all(life.#reading)
    await browser.close()
    return life
  }

  async #openPage(browser: TestBrowser): Promise<Page> {
    const { owner, site } = this.#options
    const { page, context } = await browser.open()
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await context.addCookies([...owner.cookies].map(([name, value]) => ({ name, value, url: site.origin })))
    page.on('response', (response) => void this.#reading.push(this.#read(response)))
    return page
  }

  async #live(page: Page): Promise<void> {
    const { site, model } = this.#options
    await topUp(page, site.origin, '$10')
    const keys = new KeyPages(page, site.origin)
    const { value } = await keys.make({ name: NAME })
    this.#note('the value of a key', value)
    await this.#keep(page)
    await this.#call(value, model)
    await this.#call(value, 'another-model')
    const next = await keys.replace(NAME)
    this.#note('the next value of a key', next)
    await this.#keep(page)
    for (const one of [next, value]) await this.#call(one, model)
    await page.reload()
    await this.#keep(page)
    await keys.revoke(NAME, 1)
    await this.#call(next, model)
    await page.goto(`${site.origin}/usage`)
    await page.getByRole('table', { name: 'Tokens, by model' }).waitFor()
    await this.#keep(page)
  }

  #note(what: string, value: string): void {
    for (const all of [this.values, this.#options.canaries]) all.note(what, value)
  }

  async #call(credential: string, model: string): Promise<void> {
    const { lab, site } = this.#options
    this.statuses.push((await ask(lab, site.stack.gateway.url, { credential, model })).status)
  }

  async #keep(page: Page): Promise<void> {
    const stored = await page.context().storageState({ indexedDB: true })
    this.kept.push([await page.content(), await page.evaluate(KEPT), JSON.stringify(stored)].join('\n'))
  }

  async #read(response: Response): Promise<void> {
    const { pathname } = new URL(response.url())
    if (!pathname.startsWith('/api/')) return
    const isHandedOut = response.request().method() === 'POST' && HANDED_OUT.test(pathname)
    const body = await response.text().catch(() => '') // of a page that was left meanwhile
    if (isHandedOut) this.handedOut.push(body)
    else this.answers.push(body)
    this.answers.push(JSON.stringify(response.headers()))
  }
}
