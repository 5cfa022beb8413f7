/** The built pages of the dashboard: what a strict content policy lets through, and what the server needs to find. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'vite'
import { beforeAll, expect, test } from 'vitest'
import { ROOT } from '../support/documents.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const folder = temporaryFolderOfFile()
const text = (path: string): string => readFileSync(join(folder, path), 'utf8')

interface ManifestEntry {
  readonly file: string
  readonly isEntry?: boolean
  readonly css?: readonly string[]
}
let manifest: Readonly<Record<string, ManifestEntry>>

beforeAll(async () => {
  await build({ configFile: join(ROOT, 'dashboard/web/vite.config.ts'), logLevel: 'error', build: { outDir: folder } })
  manifest = JSON.parse(text('.vite/manifest.json')) as typeof manifest
})

test('the app page holds no inline script and no inline style, and loads only its own files', () => {
  const page = text('index.html')
  expect(page).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i)
  const loaded = [...page.matchAll(/\s(?:src|href)="([^"]*)"/g)].map(([, url]) => url)
  expect(loaded.length).toBeGreaterThan(3)
  expect(loaded.filter((url) => !/^\/(assets\/|icon\.svg$)/.test(url ?? ''))).toEqual([])
})

test('the first load is one script, whose size .size-limit.json bounds', () => {
  const scripts = [...text('index.html').matchAll(/\s(?:src|href)="([^"]*\.js)"/g)].map(([, url]) => url)
  expect(scripts).toEqual([expect.stringMatching(/^\/assets\/app-[\w-]+\.js$/)])
})

test('the server finds the script and the styles of the pages before sign-in, with all their shared styles', () => {
  const { file = '', css = [], isEntry } = manifest['door.ts'] ?? {}
  expect(isEntry).toBe(true)
  expect(text(file)).toContain('data-show-password')
  const styles = css.map(text).join('\n')
  for (const name of ['.door', '.button', '.field', '.banner', '--canvas']) expect(styles).toContain(name)
})

test('the script of the pages before sign-in brings no React', () => {
  const { file = '' } = manifest['door.ts'] ?? {}
  expect(text(file)).not.toContain('import')
  expect(text(file).length).toBeLessThan(4000)
})

test('the styles load nothing: no data: URL, no font, no picture of another site', () => {
  const styles = readdirSync(join(folder, 'assets')).filter((name) => name.endsWith('.css'))
  expect(styles.length).toBeGreaterThan(1)
  for (const name of styles) expect(text(`assets/${name}`)).not.toMatch(/url\(|@import|@font-face/)
})

test('no file is a source map: the pages do not carry their sources twice', () => {
  expect(readdirSync(join(folder, 'assets')).filter((name) => name.endsWith('.map'))).toEqual([])
})
