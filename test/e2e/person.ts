/** A person at the pages of the dashboard: what they read, press and type, by the names that a screen reader says. */
import type { Locator, Page, Response } from 'playwright-core'
import { waitFor } from '../support/wait-for.ts'

/** The providers as the buttons name them. */
export type ProviderName = 'GitHub' | 'Google' | 'Acme'

export interface Identity {
  readonly email: string
  /** Subject at Acme. */
  readonly subject: string
}

const TOO_MANY_REQUESTS = 429
/** All browsers of a test are one source, and the limits of a source count ten seconds. */
const EVERY_TRY_MS = 2_000

export class Person {
  readonly #page: Page
  readonly #origin: string

  constructor(page: Page, origin: string) {
    this.#page = page
    this.#origin = origin
  }

  button(name: string): Locator {
    return this.#page.getByRole('button', { name, exact: true })
  }

  field(name: string): Locator {
    return this.#page.getByLabel(name, { exact: true })
  }

  get dialog(): Locator {
    return this.#page.getByRole('dialog')
  }

  async open(path: string): Promise<void> {
    await this.#page.goto(new URL(path, this.#origin).href)
  }

  async reads(text: string | RegExp): Promise<void> {
    await this.#page.getByText(text).first().waitFor()
  }

  async sees(heading: string | RegExp): Promise<void> {
    await this.#page.getByRole('heading', { level: 1, name: heading }).waitFor()
  }

  async isIn(): Promise<void> {
    await this.#page.getByRole('navigation').waitFor()
  }

  async fill(fields: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, value] of Object.entries(fields)) await this.field(name).fill(value)
  }

  /** Ends at what follows: the dashboard, the question for a code, or why the sign-in was refused. */
  async signIn(email: string, password: string): Promise<void> {
    await this.#submit('Sign in', async () => {
      await this.open('/sign-in')
      await this.fill({ Email: email, Password: password })
    })
  }

  async signInThrough(provider: ProviderName, identity: Identity): Promise<void> {
    await this.#submit(`Continue with ${provider}`, () => this.open('/sign-in'))
    await this.#proveAt(provider, identity)
  }

  async link(provider: ProviderName, identity: Identity): Promise<void> {
    await this.open('/settings')
    await this.button(`Link ${provider}`).click()
    await this.#proveAt(provider, identity)
    await this.button(`Unlink ${provider}`).waitFor()
  }

  async typeCode(label: string, code: string): Promise<void> {
    await this.fill({ [label]: code })
    await this.button('Sign in').click()
  }

  /** A person who is told to wait fills in the form again later. */
  async #submit(button: string, fillIn: () => Promise<void>): Promise<void> {
    const isPost = (response: Response): boolean => response.request().method() === 'POST'
    await waitFor(
      `an answer to ${button}`,
      async () => {
        await fillIn()
        const [answer] = await Promise.all([this.#page.waitForResponse(isPost), this.button(button).click()])
        return answer.status() !== TOO_MANY_REQUESTS
      },
      { everyMs: EVERY_TRY_MS },
    )
  }

  /** The pages of the provider. Acme also asks whether the dashboard may read the name. */
  async #proveAt(provider: ProviderName, { email, subject }: Identity): Promise<void> {
    await this.#page.waitForURL((url) => url.origin !== this.#origin)
    await this.fill(provider === 'Acme' ? { Account: subject } : { Email: email })
    await this.button('Sign in').click()
    if (provider === 'Acme') await this.button('Allow').click()
    await this.#page.waitForURL((url) => url.origin === this.#origin)
  }
}
