/** What a person does on the pages of keys in a real browser, by the names that a screen reader says. */
import type { Locator, Page } from 'playwright-core'

const KEY = /^sk-hg1\w{59}$/

export interface KeyFields {
  readonly name: string
  /** Default: all of the plan. */
  readonly models?: readonly string[]
  readonly budget?: { readonly amount: string; readonly window: string }
  readonly requestsPerMinute?: string
  readonly tokensPerMinute?: string
}

/** A key as the page handed it out. Neither field may reach a message of a test. */
export interface MadeKey {
  readonly id: string
  readonly value: string
  /** The variables of the text for `.env`. */
  readonly env: Readonly<Record<string, string>>
}

export class KeyPages {
  readonly #page: Page
  readonly #origin: string

  /** @param page may read and write the clipboard */
  constructor(page: Page, origin: string) {
    this.#page = page
    this.#origin = origin
  }

  /** Makes a key, copies its value, and ends on its page, once every gateway admits the key. */
  async make(fields: KeyFields): Promise<MadeKey> {
    await this.#page.goto(`${this.#origin}/keys?new`)
    await this.#fill(this.#dialog('New key'), fields)
    await this.#button('Create key').click()
    const { value, env } = await this.takeValue()
    await this.open(fields.name)
    return { id: new URL(this.#page.url()).pathname.split('/').at(-1) ?? '', value, env }
  }

  /** Copies the value that is shown once, and closes it. */
  async takeValue(): Promise<Pick<MadeKey, 'value' | 'env'>> {
    const shown = this.#dialog('Copy your key now')
    await shown.getByText('You can call now.').waitFor()
    await shown.getByRole('button', { name: 'Copy', exact: true }).click()
    await shown.getByRole('button', { name: 'Copied', exact: true }).waitFor()
    const value = String(await this.#page.evaluate('navigator.clipboard.readText()'))
    // messages without the value
    if (!KEY.test(value)) throw new Error('the clipboard holds no key')
    if ((await shown.getByLabel('API key').inputValue()) !== value) throw new Error('the clipboard holds another value than the page')
    const lines = (await shown.getByRole('tabpanel').locator('pre').innerText()).trim().split('\n')
    await this.#button('Done').click()
    await shown.waitFor({ state: 'detached' })
    return { value, env: Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])) }
  }

  async open(name: string): Promise<void> {
    await this.#page.goto(`${this.#origin}/keys`)
    await this.#page.getByRole('link', { name, exact: true }).click()
    await this.#page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  }

  /** The rows of "Limits in force" by title: the value, and who sets it. */
  async limitsInForce(name: string): Promise<Readonly<Record<string, readonly [value: string, owner: string]>>> {
    await this.open(name)
    const table = this.#page.getByRole('table', { name: 'Limits in force' })
    await table.getByText('Requests per minute').waitFor()
    const rows = await table
      .getByRole('row')
      .filter({ has: this.#page.getByRole('rowheader') })
      .all()
    const read = rows.map(async (row): Promise<readonly [string, readonly [string, string]]> => {
      const [value = '', owner = ''] = await row.getByRole('cell').allInnerTexts()
      return [await row.getByRole('rowheader').innerText(), [value.trim(), owner.trim()]]
    })
    return Object.fromEntries(await Promise.all(read))
  }

  /** @returns the next value, after the former one was ended at once and every gateway admits the next one */
  async replace(name: string): Promise<string> {
    await this.open(name)
    await this.#button('Replace').click()
    const dialog = this.#dialog(`Replace ${name}`)
    await dialog.getByLabel('Not at all').check()
    await dialog.getByRole('button', { name: 'Replace', exact: true }).click()
    return (await this.takeValue()).value
  }

  /** Types the name to confirm, and waits until every gateway has acknowledged the end. */
  async revoke(name: string, gateways: number): Promise<void> {
    await this.open(name)
    await this.#button('Revoke').click()
    const dialog = this.#dialog(`Revoke ${name}?`)
    await dialog.getByLabel('Type the name to confirm').fill('another name')
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).click()
    await dialog.getByText(`This is not ${name}.`).first().waitFor()
    await dialog.getByLabel('Type the name to confirm').fill(name)
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).click()
    await this.#page.getByText(`Revoked on ${gateways}/${gateways} gateways`).first().waitFor()
  }

  async #fill(form: Locator, { name, models, budget, requestsPerMinute, tokensPerMinute }: KeyFields): Promise<void> {
    await form.getByLabel('Name').fill(name)
    if (models !== undefined) await form.getByLabel('Only these').check()
    for (const model of models ?? []) await form.getByLabel(model, { exact: true }).check()
    if (budget !== undefined) {
      await form.getByLabel('Maximum budget').fill(budget.amount)
      await form.getByLabel('Budget window').selectOption(budget.window)
    }
    if (requestsPerMinute !== undefined) await form.getByLabel('Requests per minute').fill(requestsPerMinute)
    if (tokensPerMinute !== undefined) await form.getByLabel('Tokens per minute').fill(tokensPerMinute)
  }

  #button(name: string): Locator {
    return this.#page.getByRole('button', { name, exact: true })
  }

  #dialog(name: string): Locator {
    return this.#page.getByRole('dialog', { name })
  }
}

/** Pays an amount such as `$10` at the stand-in for Stripe, and waits until the page of billing has the amount. */
export async function topUp(page: Page, origin: string, amount: string): Promise<void> {
  await page.goto(`${origin}/billing`)
  await page.getByText(amount, { exact: true }).click()
  await page.getByRole('button', { name: 'Top up', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Stand-in for Stripe' }).waitFor()
  await page.getByRole('button', { name: 'Pay', exact: true }).click()
  await page.getByText(`${amount}.00 is in the balance`, { exact: true }).waitFor()
}
