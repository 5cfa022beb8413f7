/**
 * Estimates the tokens of a text from its UTF-8 bytes, without a tokenizer. The weights fit seven tokenizers: over prose, code, digits,
 * base64, Chinese, Hindi and emoji the sum is 0.85 to 3.2 times the true count (decision 21).
 *
 * Every limited request runs this code, so the inner loop has no branch: it reads four bytes per step through tables. It takes 1 ns per
 * byte.
 */

/** Weights are in hundredths of a token, because integers add up exactly. */
const TOKEN = 100
const PUNCTUATION = 75
const BYTE_ABOVE_ASCII = 36
/** A character of four bytes: an emoji or a rare one. */
const FOUR_BYTES = 300
const LETTERS_PER_TOKEN = 5

/** Longer runs without a break are not words but base64, hashes or identifiers. Tokenizers cut them into pieces of 1.4 bytes. */
const LONG_RUN = 40
const LONG_RUN_BYTE = TOKEN / 1.4
/** A long run that contains `+ / = _ -` is a path or a name made of words, unless at least every sixteenth character is a digit. */
const RUN_PER_DIGIT = 16

const LETTER = 0
const JOINER = 1
const DIGIT = 2
const PUNCT = 3
const SPACE = 4
const ABOVE_ASCII = 5
/** Kind of every byte. Letters, joiners and digits make runs; every other byte ends a run. */
const KIND_OF = Uint8Array.from({ length: 256 }, (_, byte) => kindOf(byte))

function kindOf(byte: number): number {
  if (byte > 127) return ABOVE_ASCII
  const character = String.fromCharCode(byte)
  if (/[A-Za-z]/.test(character)) return LETTER
  if (/[0-9]/.test(character)) return DIGIT
  if (/[-+/=_]/.test(character)) return JOINER
  return /\s/.test(character) ? SPACE : PUNCT
}

/** Weight without neighbours. The first byte of a character above ASCII has the weight of the whole character. */
function ownWeight(byte: number): number {
  if (byte >= 0xf0) return FOUR_BYTES
  if (byte >= 0xe0) return 3 * BYTE_ABOVE_ASCII
  if (byte >= 0xc0) return 2 * BYTE_ABOVE_ASCII
  const kind = KIND_OF[byte]
  if (kind === DIGIT) return TOKEN
  return kind === PUNCT || kind === JOINER ? PUNCTUATION : 0
}

/** Bytes per step of the inner loop. */
const STRIDE = 4
/** A byte without weight, which fills up the last step. */
const FILLER = 0x80

/** Context of letters and spaces, whose weight depends on the byte before. Two bits per byte. */
const NEITHER = 0
const IS_LETTER = 1
const IS_SPACE = 2
const CONTEXT_BITS = 2
/** Bits for the own weights of one step. */
const WEIGHT_BITS = 11
const WEIGHT_MASK = 2 ** WEIGHT_BITS - 1

/** By position in the step and byte: its own weight, and above that its bits of the key of `STEP`. The entries of a step add up to both. */
const ENTRY = Int32Array.from({ length: STRIDE * 256 }, (_, index) => entryOf(index >>> 8, index & 0xff))

function entryOf(place: number, byte: number): number {
  const kind = KIND_OF[byte]
  const context = kind === LETTER ? IS_LETTER : kind === SPACE ? IS_SPACE : NEITHER
  return ownWeight(byte) + (context << (WEIGHT_BITS + CONTEXT_BITS * place))
}

/** State before a byte. 0: no open token. 1 to 4: letters of a token that has room for more. Then: spaces. */
const ONE_SPACE = LETTERS_PER_TOKEN
const SPACES = ONE_SPACE + 1
const STATE_SHIFT = 8
const TOKENS_MASK = 2 ** STATE_SHIFT - 1
const STATE_MASK = 7 << STATE_SHIFT

/** By state and contexts of a step: the next state, and the tokens of its letters and spaces in the lowest bits. */
const STEP = Uint16Array.from({ length: (SPACES + 1) << STATE_SHIFT }, (_, index) => stepOf(index >>> STATE_SHIFT, index & TOKENS_MASK))

function stepOf(before: number, key: number): number {
  let state = before
  let tokens = 0
  for (let place = 0; place < STRIDE; place++) {
    const context = (key >>> (CONTEXT_BITS * place)) & 3
    const next = stateAfter(state, context)
    if (context === IS_LETTER && (state === 0 || state >= ONE_SPACE)) tokens++ // the first letter of five
    if (next === SPACES && state === ONE_SPACE) tokens++ // a single space belongs to the next word; several spaces together are one token
    state = next
  }
  return (state << STATE_SHIFT) + tokens
}

function stateAfter(state: number, context: number): number {
  if (context === IS_LETTER) return state >= ONE_SPACE ? 1 : (state + 1) % LETTERS_PER_TOKEN
  if (context === IS_SPACE) return state >= ONE_SPACE ? SPACES : ONE_SPACE
  return 0
}

const MAX_SHARED_BYTES = 64 * 1024
/** Maximum number of UTF-8 bytes of a UTF-16 unit. */
const BYTES_PER_UNIT = 3
/** Buffer for most texts; its content is used only within one `add`. */
const sharedBytes = Buffer.alloc(MAX_SHARED_BYTES + STRIDE)

export class TextWeight {
  #weight = 0

  get tokens(): number {
    return Math.ceil(this.#weight / TOKEN)
  }

  add(text: string): void {
    const isShort = text.length * BYTES_PER_UNIT <= MAX_SHARED_BYTES
    const bytes = isShort ? sharedBytes : Buffer.allocUnsafe(Buffer.byteLength(text) + STRIDE)
    this.#weight += weightOf(bytes, bytes.write(text))
  }

  addTokens(tokens: number): void {
    this.#weight += tokens * TOKEN
  }
}

/** Weighs the first `length` bytes, in hundredths of a token. It overwrites bytes. */
function weightOf(bytes: Uint8Array, length: number): number {
  let weight = 0
  let done = 0
  // a run of more than LONG_RUN bytes contains at least one of the bytes that are read
  for (let at = LONG_RUN; at < length; at += LONG_RUN + 1) {
    if (!isRun(bytes, at)) continue
    const start = runStart(bytes, at)
    at = runEnd(bytes, at, length)
    if (at - start <= LONG_RUN || !isUnbroken(bytes, start, at)) continue
    weight += wordsWeight(bytes, done, start) + Math.ceil((at - start) * LONG_RUN_BYTE)
    done = at
  }
  return weight + wordsWeight(bytes, done, length)
}

/** Weighs the bytes from `from` to `end`, in hundredths of a token, long runs as words. It overwrites up to three bytes after them. */
function wordsWeight(bytes: Uint8Array, from: number, end: number): number {
  bytes[end] = bytes[end + 1] = bytes[end + 2] = FILLER
  let own = 0
  let tokens = 0
  let state = 0
  for (let at = from; at < end; at += STRIDE) {
    const sum = entry(bytes[at], 0) + entry(bytes[at + 1], 1) + entry(bytes[at + 2], 2) + entry(bytes[at + 3], 3)
    const step = STEP[state + (sum >>> WEIGHT_BITS)] ?? 0
    own += sum & WEIGHT_MASK
    tokens += step & TOKENS_MASK
    state = step & STATE_MASK
  }
  return own + tokens * TOKEN
}

function entry(byte: number | undefined, place: number): number {
  return ENTRY[((byte ?? FILLER) & 0xff) + (place << 8)] ?? 0
}

function isRun(bytes: Uint8Array, at: number): boolean {
  return (KIND_OF[bytes[at] ?? FILLER] ?? PUNCT) < PUNCT
}

function runStart(bytes: Uint8Array, at: number): number {
  let start = at
  while (start > 0 && isRun(bytes, start - 1)) start--
  return start
}

function runEnd(bytes: Uint8Array, at: number, length: number): number {
  let end = at + 1
  while (end < length && isRun(bytes, end)) end++
  return end
}

/** Whether a long run contains no words. */
function isUnbroken(bytes: Uint8Array, start: number, end: number): boolean {
  let digits = 0
  let joiners = 0
  for (let at = start; at < end; at++) {
    const kind = KIND_OF[bytes[at] ?? FILLER] ?? LETTER
    digits += kind >>> 1 // of the three kinds in a run
    joiners += kind & 1
  }
  return joiners === 0 || digits * RUN_PER_DIGIT >= end - start
}
