/** Finds the known word that a user probably meant. */

/** Longer words are not compared: they are unlikely to be typing mistakes, and a comparison would take long. */
const MAX_LENGTH = 64
/** The known word may differ in one letter for each group of this many of its letters. */
const LETTERS_PER_MISTAKE = 3

/** @returns the known word that differs least from `word`, ignoring case; undefined when no word is similar enough */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > MAX_LENGTH) return undefined
  const ranked = known
    .map((candidate) => ({ candidate, mistakes: mistakesBetween(word.toLowerCase(), candidate.toLowerCase()) }))
    .toSorted((a, b) => a.mistakes - b.mistakes)
  const [best] = ranked
  return best !== undefined && best.mistakes <= Math.floor(best.candidate.length / LETTERS_PER_MISTAKE) ? best.candidate : undefined
}

/** Distance by optimal string alignment: letters added, omitted, replaced, or swapped with their neighbour. */
function mistakesBetween(from: string, to: string): number {
  let twoUp: number[] = []
  let up = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const at = (list: readonly number[], index: number): number => list[index] ?? Infinity
      const isSame = from[row - 1] === to[column - 1]
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      const swapped = isSwapped ? at(twoUp, column - 2) + 1 : Infinity
      current.push(Math.min(at(up, column) + 1, at(current, column - 1) + 1, at(up, column - 1) + (isSame ? 0 : 1), swapped))
    }
    twoUp = up
    up = current
  }
  return up[to.length] ?? Infinity
}
