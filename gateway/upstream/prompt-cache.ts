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

/** Counts of tokens that were in the cache, or were not, and the times of the latter (llama.cpp), from which their number follows. */
const CACHED = [
  ...['cached_tokens', 'cache_write_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'tokens_cached'],
  ...['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens', 'prompt_cache_hit_tokens', 'prompt_cache_miss_tokens'],
  ...['cache_n', 'prompt_n', 'prompt_ms', 'prompt_per_token_ms', 'prompt_per_second'],
]
const NUMBER = numbersOf(CACHED)
/** In events of llama.cpp that name the progress of a prompt. Elsewhere these words may be the arguments of a tool. */
const PROGRESS = numbersOf(['cache', 'processed', 'time_ms'])
/** Longer than any match. */
const HELD_BYTES = 80

/** Numbers followed by another character: the rest of a number may be in the next chunk. */
function numbersOf(names: readonly string[]): RegExp {
  return new RegExp(`("(?:${names.join('|')})"\\s{0,8}:\\s{0,8})(-?\\d[\\d.eE+-]{0,23})(?=[^\\d.eE+-])`, 'g')
}

/** @param bytes whole text @returns `bytes` itself if it holds no such number */
export function withoutCached(bytes: Buffer): Buffer {
  if (!bytes.includes('cache') && !bytes.includes('"prompt_')) return bytes
  const text = bytes.toString('latin1')
  const counted = text.replaceAll(NUMBER, zero)
  const hidden = text.includes('"prompt_progress"') ? counted.replaceAll(PROGRESS, zero) : counted
  return hidden === text ? bytes : Buffer.from(hidden, 'latin1')
}

function zero(_: string, before: string, number: string): string {
  return before + '0'.padEnd(number.length)
}

/** The same for a text in chunks. It holds back the last bytes until more of them, or the end, arrive. */
export class HiddenCache {
  #held: Buffer = Buffer.alloc(0)

  /** @returns what may be sent */
  push(chunk: Buffer): Buffer {
    const bytes = withoutCached(Buffer.concat([this.#held, chunk]))
    const sent = Math.max(0, bytes.length - HELD_BYTES)
    this.#held = bytes.subarray(sent)
    return bytes.subarray(0, sent)
  }

  end(): Buffer {
    return this.#held
  }
}
