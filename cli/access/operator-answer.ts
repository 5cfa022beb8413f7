/** Asks the operator about an account: in a cluster through kubectl, or at a URL, or in `make run`. */
import { z } from 'zod'
import { CommandLineError, DNS_NAME, quoted, Unusable } from '../command-line.ts'
import { plain } from '#contract/values/plain-text.ts'
import type { LocalState } from './local-state.ts'

/** Options by which a command finds the operator. */
export const ACCESS_OPTIONS = {
  namespace: { type: 'string', short: 'n', default: 'headgate' },
  'service-account': { type: 'string' },
  service: { type: 'string', default: 'headgate-operator-usage' },
  context: { type: 'string' },
  url: { type: 'string' },
  local: { type: 'boolean', default: false },
} as const

/** Their lines of a help text. */
export const ACCESS_HELP = `  -n, --namespace NAME       namespace of the operator and of the ServiceAccount (default: headgate)
      --service-account NAME the ServiceAccount that reads
      --service NAME         Service of the operator's usage (default: headgate-operator-usage)
      --context NAME         context of kubectl
      --local                ask the \`make run\` that was started in this folder
      --url URL              where the usage is served`

/** How the operator of a cluster is reached. */
export interface ClusterAccess {
  readonly namespace: string
  readonly serviceAccount: string
  readonly service: string
  readonly context: string | undefined
}

/** `local`: the `make run` of this folder. */
export type OperatorAccess = ClusterAccess | { readonly url: string } | 'local'

/** What commands that ask the operator need from outside. */
export interface AccessSurroundings {
  readonly usageToken: () => string | undefined
  /** Calls `use` with the address of the operator and a token. @throws Unusable */
  readonly reachOperator: <T>(access: ClusterAccess, use: (url: string, token: string) => Promise<T>) => Promise<T>
  readonly local: Pick<LocalState, 'usageURL'>
  readonly fetch: typeof fetch
  readonly print: (text: string) => void
  /** Notes beside the output. */
  readonly report: (text: string) => void
}

interface AccessValues {
  readonly namespace: string
  readonly 'service-account'?: string | undefined
  readonly service: string
  readonly context?: string | undefined
  readonly url?: string | undefined
  readonly local: boolean
}

/** @param right what the ServiceAccount may get, for example `accounts/usage` @throws CommandLineError */
export function accessOf(values: AccessValues, right: string): OperatorAccess {
  const { url, local, namespace, service, context, 'service-account': serviceAccount } = values
  if (local && url !== undefined) throw new CommandLineError('--local and --url are both given; leave one out')
  if (local) return 'local'
  if (url !== undefined) {
    if (!URL.canParse(url) || !/^https?:/.test(url)) throw new CommandLineError(`--url ${quoted(url)} is not an http(s) URL`)
    return { url }
  }
  if (serviceAccount === undefined)
    throw new CommandLineError(`--service-account is missing: name one in the namespace of the operator that may get ${right}`)
  for (const [option, name] of Object.entries({ namespace, service, 'service-account': serviceAccount })) {
    if (!DNS_NAME.test(name)) throw new CommandLineError(`--${option} ${quoted(name)} is not a name`)
  }
  return { namespace, serviceAccount, service, context }
}

/** @param path with its query @returns the body of the answer @throws Unusable */
export async function askOperator(path: string, access: OperatorAccess, around: AccessSurroundings): Promise<string> {
  const ask = (base: string, token: string | undefined): Promise<string> => bodyOf(new URL(path, base), token, around.fetch)
  if (access === 'local') return await ask(await around.local.usageURL(), undefined)
  return 'url' in access ? await ask(access.url, around.usageToken()) : await around.reachOperator(access, ask)
}

/** @throws Unusable for an answer of another form */
export function readAnswer<T>(schema: z.ZodType<T>, text: string): T {
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    throw new Unusable('the answer is not one of a Headgate operator of this version; check --url')
  }
}

async function bodyOf(url: URL, token: string | undefined, get: typeof fetch): Promise<string> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await get(url, { headers, redirect: 'error' }).catch((error: unknown) => {
    throw new Unusable(`${url.origin} does not answer (${error instanceof Error ? error.message : String(error)})`)
  })
  const text = await response.text()
  if (response.ok) return text
  throw new Unusable(`the operator answers ${response.status}: ${plain(messageIn(text))}`)
}

function messageIn(text: string): string {
  try {
    return z.object({ error: z.object({ message: z.string() }) }).parse(JSON.parse(text)).error.message
  } catch {
    return 'no reason was given; check --url'
  }
}
