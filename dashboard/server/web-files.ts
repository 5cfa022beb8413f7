/** The built files of dist/web: the single-page app, and the stylesheets and scripts of the pages before sign-in. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { Misconfigured } from '#platform/lifecycle.ts'
import { messageOf } from '#platform/message-of.ts'

export interface WebFiles {
  /** Folder with `assets/` and `icon.svg`. */
  readonly folder: string
  /** The page that starts the app. */
  readonly app: string
  /** URLs for the pages that the server renders. */
  readonly styles: readonly string[]
  readonly scripts: readonly string[]
}

const manifestSchema = z.record(
  z.string(),
  z.object({ file: z.string(), css: z.array(z.string()).default([]), imports: z.array(z.string()).default([]) }),
)
const DOOR = 'door.ts'

/** @throws Misconfigured if the folder has no build */
export function readWebFiles(folder: string): WebFiles {
  try {
    const manifest = manifestSchema.parse(JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8')))
    const app = readFileSync(join(folder, 'index.html'), 'utf8')
    const door = manifest[DOOR]
    if (door === undefined) throw new Error(`the build has no ${DOOR}`)
    const chunks = [door, ...door.imports.flatMap((name) => manifest[name] ?? [])]
    const styles = [...new Set(chunks.flatMap(({ css }) => css))]
    return { folder, app, styles: styles.map((path) => `/${path}`), scripts: [`/${door.file}`] }
  } catch (cause) {
    throw new Misconfigured(`the pages of the dashboard are not built (${messageOf(cause)}); run \`make web\``, { cause })
  }
}
