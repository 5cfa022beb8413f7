/** Reads the requests of operators that an API server allowed from its audit log, which `test/parts/control-plane.sh` makes. */
import { createReadStream, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Right, Where } from '../../operator/rights.ts'
import { USER_AGENT } from './kube-admin.ts'

/** The fields of one request that the tests read. Level Metadata: without a body. */
interface AuditEvent {
  readonly level: string
  readonly verb: string
  readonly user: { readonly username: string }
  readonly userAgent?: string
  readonly objectRef?: {
    readonly resource: string
    readonly subresource?: string
    readonly apiGroup?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly annotations?: Readonly<Record<string, string>>
  readonly requestObject?: unknown
  readonly responseObject?: unknown
}

/** The beginning of each entry. A server killed during a write begins its next entry in the middle of a line. */
const BEGINNING = '{"kind":"Event"'
const OPERATOR = /^system:serviceaccount:([^:]+):headgate-operator$/
/** The name of the chart's Role for former namespaces. The log names the role that allowed a request. */
const FORMER_ROLE = /Role "headgate-operator-[^"]+-former"/

/** @returns each verb of a row as `own get /secrets`, with the row */
export function grants(rights: readonly Right[]): ReadonlyMap<string, Right> {
  return new Map(
    rights.flatMap((right) => right.verbs.map((verb) => [useOf(right.where, verb, `${right.group}/${right.resource}`), right] as const)),
  )
}

/**
 * Reads every audit log below a folder.
 * @param rights the table: a request in the operator's own namespace for what no `own` row names is one in a watched namespace
 * @returns the allowed requests, in the form of `grants`
 * @throws Error for a log that holds a body
 */
export async function allowedUses(folder: string, rights: readonly Right[]): Promise<ReadonlySet<string>> {
  const targetsOf = (place: Where): ReadonlySet<string> =>
    new Set(rights.filter(({ where }) => where === place).map(({ group, resource }) => `${group}/${resource}`))
  const targets = { own: targetsOf('own'), accounts: targetsOf('accounts') }
  const uses = new Set<string>()
  for (const file of auditLogsBelow(folder)) {
    for await (const line of createInterface({ input: createReadStream(file) })) {
      if (!line.endsWith('}')) continue // the server was killed while it wrote this line
      const event = JSON.parse(line.slice(Math.max(0, line.lastIndexOf(BEGINNING)))) as AuditEvent // of kube-apiserver
      if (event.level !== 'Metadata' || event.requestObject || event.responseObject) throw new Error(`${file} holds more than metadata`)
      const use = allowedUse(event, targets)
      if (use !== undefined) uses.add(use)
    }
  }
  return uses
}

/** Resources, with their subresources, that the rows of a place name. */
interface Targets {
  readonly own: ReadonlySet<string>
  readonly accounts: ReadonlySet<string>
}

function allowedUse(event: AuditEvent, { own, accounts }: Targets): string | undefined {
  const { verb, user, objectRef, annotations } = event
  const home = OPERATOR.exec(user.username)?.[1]
  const isAllowed = annotations?.['authorization.k8s.io/decision'] === 'allow'
  if (home === undefined || !objectRef || !isAllowed || isOfTests(event)) return undefined
  const target = [`${objectRef.apiGroup ?? ''}/${objectRef.resource}`, objectRef.subresource].filter((part) => part !== undefined).join('/')
  const isOwn = objectRef.namespace === home && own.has(target)
  return useOf(isOwn ? 'own' : placeOf(event, target, accounts), verb, target)
}

function placeOf({ annotations }: AuditEvent, target: string, accounts: ReadonlySet<string>): Where {
  if (target === '/namespaces') return 'cluster'
  if (accounts.has(target)) return 'accounts'
  return FORMER_ROLE.test(annotations?.['authorization.k8s.io/reason'] ?? '') ? 'former' : 'watched'
}

/** Requests of tests that use the operator's ServiceAccount do not count as uses by the operator. */
function isOfTests({ userAgent = '' }: AuditEvent): boolean {
  return userAgent === USER_AGENT || userAgent.startsWith('kubectl/')
}

function useOf(where: Where, verb: string, target: string): string {
  return `${where} ${verb} ${target}`
}

function auditLogsBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return entries.filter((name) => /(^|\/)audit\/audit[^/]*\.log$/.test(name)).map((name) => join(folder, name))
}
