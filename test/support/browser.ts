/** A real browser: Debian's Chromium, driven by playwright-core. */
import { execFileSync } from 'node:child_process'
import { AxeBuilder } from '@axe-core/playwright'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import { expect } from 'vitest'

/** Only catches hangs, also on a machine with other work, ms. */
const HANG_MS = 60_000
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** Why no test can use the browser here; undefined when Chromium is installed. For `skip`. */
export function missingBrowser(): string | undefined {
  return chromiumPath() === undefined
    ? 'chromium is not installed: apt-get install --no-install-recommends chromium fonts-inter'
    : undefined
}

function chromiumPath(): string | undefined {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}

export interface BrowserOptions {
  /** Viewport, pixels. */
  readonly width?: number
  readonly height?: number
  /** The person prefers dark pages. */
  readonly dark?: boolean
  readonly javaScript?: boolean
}

/** A page in a context of its own: no cookie of another one. */
export interface OpenedPage {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors that the page wrote or threw, and requests that failed. A page without a fault has none. */
  readonly problems: readonly string[]
  /** Origins of all requests. */
  readonly origins: ReadonlySet<string>
}

export interface LaunchOptions {
  /** A program that starts Chromium with its arguments. Default: Chromium itself. */
  readonly program?: string
  /** Further arguments of Chromium. */
  readonly args?: readonly string[]
}

export class TestBrowser {
  readonly #browser: Browser

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  /** @throws when Chromium is missing; ask `missingBrowser` first */
  static async start({ program, args = [] }: LaunchOptions = {}): Promise<TestBrowser> {
    const executablePath = chromiumPath()
    if (executablePath === undefined) throw new Error(missingBrowser())
    return new TestBrowser(await chromium.launch({ executablePath: program ?? executablePath, args: [...args], timeout: HANG_MS }))
  }

  async open({ width = 1280, height = 720, dark = false, javaScript = true }: BrowserOptions = {}): Promise<OpenedPage> {
    const context = await this.#browser.newContext({
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce', // pictures and colours do not depend on the time
      locale: 'en-US',
      timezoneId: 'UTC',
      javaScriptEnabled: javaScript,
    })
    context.setDefaultTimeout(HANG_MS)
    if (!javaScript) withoutJavaScript.add(context)
    const page = await context.newPage()
    return { page, context, ...watched(page) }
  }

  async close(): Promise<void> {
    await this.#browser.close()
  }
}

const withoutJavaScript = new WeakSet<BrowserContext>()

function watched(page: Page): Pick<OpenedPage, 'problems' | 'origins'> {
  const problems: string[] = []
  const origins = new Set<string>()
  page.on('console', (message) => void (message.type() === 'error' && problems.push(`console: ${message.text()}`)))
  page.on('pageerror', (error) => problems.push(`thrown: ${error.message}`))
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}: ${request.failure()?.errorText ?? ''}`))
  page.on('request', (request) => origins.add(new URL(request.url()).origin))
  return { problems, origins }
}

/** Asserts that axe finds no violation of WCAG 2.2 AA on the page as it is now. */
export async function noViolations(page: Page): Promise<void> {
  // axe ends the whole browser in such a context
  if (withoutJavaScript.has(page.context())) throw new Error('axe needs JavaScript: open the page with javaScript: true')
  const { violations } = await new AxeBuilder({ page }).withTags(AXE_TAGS).analyze()
  const found = violations.map(({ id, help, nodes }) => `${id} (${help}) at ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
  if (found.length > 0) throw new Error(`axe finds: ${found.join('; ')}`)
}

/** Asserts that the page is not wider than the viewport. */
export async function noSidewaysScroll(page: Page): Promise<void> {
  expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0)
}
