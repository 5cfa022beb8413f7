/** Hides how many tokens of a prompt a server had cached (`upstream/prompt-cache.ts` says when): the number becomes 0, with blanks behind it, so that no length changes. */

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
