/** The rule of every allow-list of models. */
import type { Rule } from './rule.ts'

/** Maximum characters of all entries of `models` together. Every gateway holds them in memory. */
const MAX_MODELS_LENGTH = 8192

export const modelsTotal: Rule<readonly string[]> = {
  id: 'models-total',
  cel: `self.map(entry, size(entry)).sum() <= ${MAX_MODELS_LENGTH}`,
  reason: `models has more than ${MAX_MODELS_LENGTH} characters in all entries together`,
  remedy: 'replace names that begin alike by one entry with * at its end',
  holds: (self) => self.reduce((sum, entry) => sum + entry.length, 0) <= MAX_MODELS_LENGTH,
}
