/**
 * Tenants that share a model server share its cache of prompts. How many tokens of a prompt were cached tells a tenant whether its guess of the
 * beginning of another one's prompt is right. So either each tenant gets a cache of its own, by a salt, or answers do not show the number: it
 * becomes 0, with blanks behind it, so that no length changes.
 */
import { createHmac } from 'node:crypto'
import type { CallRoute } from '#contract/values/call-routes.ts'
import type { ForwardJob, RelayPort } from './forward-job.ts'

/** The routes where servers know `cache_salt`. */
const SALTED: ReadonlySet<CallRoute> = new Set(['chat/completions', 'completions', 'responses'])

/**
 * Each tenant has a salt of its own, the same in all pods. Only the installation can compute it, since the operator makes the key in the record from a secret.
 * @param route the route of the server, which a translation changes
 */
export function saltOf({ model, dialect, tenant }: ForwardJob, route = dialect.route): string | undefined {
  const key = model.record.cacheSalt
  if (key === undefined || tenant === undefined || !SALTED.has(route)) return undefined
  return createHmac('sha256', key).update(tenant).digest('hex')
}

/** Whether the counts of a cache are removed from an answer. A translated answer is written without them. */
export function hidesCached({ job, translated }: Pick<RelayPort, 'job' | 'translated'>): boolean {
  return job.model.isShared && translated === undefined && saltOf(job) === undefined
}
