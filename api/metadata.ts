/** Schemas that all kinds share: conditions and the bounds of names. */
import { z } from 'zod'
import { matching, timestamp } from './bounded.ts'

/** API group of Headgate's kinds. */
export const API_GROUP = 'headgate.dev'
/** The one served version. */
export const API_VERSION = 'v1alpha1'

/** RFC 1123 subdomain: names of most objects. */
export const DNS_SUBDOMAIN = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'
/** Key of a label or an annotation: an optional DNS prefix and a name. */
export const LABEL_KEY =
  '^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'
/** The prefix of a key has at most 253 characters. This needs a second pattern, since the first one cannot limit the prefix as a whole. */
export const LABEL_KEY_PREFIX = '^[^/]{0,253}(/[^/]*)?$'
/** Value of a label. */
export const LABEL_VALUE = '^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'

/** @returns whether a text can be the key of a label or an annotation */
export function isLabelKey(key: string): boolean {
  return new RegExp(LABEL_KEY).test(key) && new RegExp(LABEL_KEY_PREFIX).test(key)
}

const CONDITION_TYPE = '^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'
const CONDITION_REASON = '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'

/** metav1.Condition */
export const condition = z.object({
  type: matching(CONDITION_TYPE, 316).min(1).describe('Aspect of the object, in CamelCase.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  observedGeneration: z.int().min(0).describe('The metadata.generation that the condition describes.').optional(),
  lastTransitionTime: timestamp().describe('When status last changed.'),
  reason: matching(CONDITION_REASON, 1024).min(1).describe('The cause in one CamelCase word.'),
  message: z.string().max(32768).describe('The cause in a sentence, with the remedy where there is one.'),
})

/** One condition in a status. */
export type Condition = z.infer<typeof condition>
