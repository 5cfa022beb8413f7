import { describe, expect, test } from 'vitest'
import { TextWeight } from './text-weight.ts'

function weigh(...texts: readonly string[]): number {
  const weight = new TextWeight()
  for (const text of texts) weight.add(text)
  return weight.tokens
}

const HEX = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
const PATH = '/usr/local/lib/modules/compiler/library/some-module-name/file_of_words.ts'
const TOOL = { type: 'object', properties: { city: { type: 'string', description: 'Name, e.g. "Zürich"' }, days: { maximum: 14 } } }

/** Tokens of ten copies. Users choose limits by these estimates, so a change must be deliberate. */
const FIXTURES: readonly (readonly [what: string, text: string, tokens: number])[] = [
  ['prose', 'Summarise the incident of last night in plain words for the people on call: what broke first, and why? ', 243],
  ['code', 'for (let at = start; at < end; at++) {\n    const kind = KIND_OF[text.charCodeAt(at)]\n    if (kind) continue\n  }\n', 363],
  ['JSON', JSON.stringify(TOOL), 565],
  ['JSON over lines', JSON.stringify(TOOL, null, 2), 665],
  ['Chinese', '人人生而自由,在尊严和权利上一律平等。', 202],
  ['Japanese between English words', 'The sign says 立入禁止 in red. ', 101],
  ['Hindi', 'सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।', 702],
  ['German', 'Alle Menschen sind frei und gleich an Würde und Rechten geboren. ', 175],
  ['emoji', 'done 😀🎉🚀 and 👩‍💻 ', 181],
  ['halves of emoji', 'cut \ud83d and \ude00 ', 42],
  ['whitespace', 'a b  c   d\t\te\n\nf \r\n g\u00a0\u00a0h\u2028 i ', 166],
  ['digits', '7919 31 245489 490978 1227445 3.14159 ', 318],
  ['a hash between words', `sha256 ${HEX} of it, `, 525],
  ['a path between words', `see ${PATH} for it, `, 305],
]

describe('the weight of a text', () => {
  test.each(FIXTURES)('of %s has not changed', (_what, text, tokens) => {
    expect(weigh(text.repeat(10))).toBe(tokens)
  })
})
