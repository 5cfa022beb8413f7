/** What all kinds share: the bounds of names, metadata as a user writes it, the rules for keys of labels, and conditions. */
import { z } from 'zod'
import { DNS_LABEL } from '#contract/values/name-patterns.ts'
import { matching, timestamp } from './bounded.ts'
import { shownText } from './manifest-error.ts'
import type { Rule } from './rule.ts'

/** API group of Headgate's kinds. */
export const API_GROUP = 'headgate.dev'

/** Label of the objects that the dashboard creates. */
export const CREATED_BY_LABEL: string = `${API_GROUP}/created-by`
export const CREATED_BY_DASHBOARD = 'dashboard'
/** The one served version. */
export const API_VERSION = 'v1alpha1'

/** RFC 1123 subdomain: names of most objects. */
export const DNS_SUBDOMAIN = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'
/** Key of a label or an annotation: an optional DNS prefix and a name. */
export const LABEL_KEY =
  '^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'
/** The prefix of a key has at most 253 characters. This needs a second pattern, since the first one cannot limit the prefix as a whole. */
const LABEL_KEY_PREFIX = '^[^/]{0,253}(/[^/]*)?$'
/** Value of a label. */
export const LABEL_VALUE = '^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'

/** @returns whether a text can be the key of a label or an annotation */
function isLabelKey(key: string): boolean {
  return new RegExp(LABEL_KEY).test(key) && new RegExp(LABEL_KEY_PREFIX).test(key)
}

/** Maximum size of all annotations of an object together, as Kubernetes sets it, bytes. */
const MAX_ANNOTATION_BYTES = 262_144

const labels = z.record(z.string(), z.string()).check(({ value, issues }) => {
  for (const [key, label] of Object.entries(value)) {
    const isFine = isLabelKey(key) && label.length <= 63 && new RegExp(LABEL_VALUE).test(label)
    if (!isFine) issues.push({ code: 'custom', input: value, message: `has the entry ${key}, which is not a valid label` })
  }
})

/** Upper-case letters count as lower case in keys of annotations, but not in keys of labels. */
const annotations = z.record(z.string(), z.string()).check(({ value, issues }) => {
  for (const key of Object.keys(value)) {
    if (!isLabelKey(key.toLowerCase()))
      issues.push({ code: 'custom', input: value, message: `has the key ${key}, which is not of the form [prefix/]name` })
  }
  const bytes = Object.entries(value).reduce((sum, [key, entry]) => sum + Buffer.byteLength(key) + Buffer.byteLength(entry), 0)
  if (bytes > MAX_ANNOTATION_BYTES) issues.push({ code: 'custom', input: value, message: 'has more than 256 KiB' })
})

/** Fields that a server or other programs fill in. They are accepted and dropped, so that the output of `kubectl get -o yaml` is valid too. */
const ofServer = z.unknown().optional()

/**
 * metadata of a manifest that a user wrote, validated as the API server does: name, namespace (`default` if absent), labels and annotations.
 * The other fields of ObjectMeta are accepted and dropped.
 */
export const objectMetadata = z
  .strictObject({
    name: matching(DNS_SUBDOMAIN, 253),
    namespace: matching(DNS_LABEL, 63).default('default'),
    labels: labels.exactOptional(),
    annotations: annotations.exactOptional(),
    generateName: ofServer,
    uid: ofServer,
    resourceVersion: ofServer,
    generation: ofServer,
    creationTimestamp: ofServer,
    deletionTimestamp: ofServer,
    deletionGracePeriodSeconds: ofServer,
    finalizers: ofServer,
    ownerReferences: ofServer,
    managedFields: ofServer,
    selfLink: ofServer,
  })
  .transform(({ name, namespace, labels: ownLabels, annotations: ownAnnotations }) => ({
    name,
    namespace,
    ...(ownLabels && { labels: ownLabels }),
    ...(ownAnnotations && { annotations: ownAnnotations }),
  }))

type Entries = Readonly<Record<string, string>>

const OWN_PREFIX = `${API_GROUP}/`

/** Keys have the form that Kubernetes accepts. */
export const labelKeys: Rule<Entries> = {
  id: 'label-keys',
  cel: `self.all(key, key.matches(r'${LABEL_KEY}') && key.matches(r'${LABEL_KEY_PREFIX}'))`,
  reason: 'a key is not of the form [prefix/]name',
  remedy: 'use letters, digits, ".", "_" and "-", at most 63 after the prefix, which is a DNS name',
  values: (self) => shownText(Object.keys(self).find((key) => !isLabelKey(key)) ?? ''),
  holds: (self) => Object.keys(self).every(isLabelKey),
}

/** Keys below headgate.dev/ are reserved for the operator. */
export const ownKeys: Rule<Entries> = {
  id: 'own-keys',
  cel: `self.all(key, !key.startsWith('${OWN_PREFIX}'))`,
  reason: `keys below ${OWN_PREFIX} belong to the operator`,
  remedy: 'choose another prefix',
  values: (self) => shownText(Object.keys(self).find((key) => key.startsWith(OWN_PREFIX)) ?? ''),
  holds: (self) => Object.keys(self).every((key) => !key.startsWith(OWN_PREFIX)),
}

/** A time lies within the years that RFC 3339 can write. @param field its name, for messages */
export function fourDigitYear(field: string): Rule<string> {
  return {
    id: 'four-digit-year',
    cel: "self.getFullYear('UTC') >= 1 && self.getFullYear('UTC') <= 9999",
    reason: `${field} is not within the years 0001 to 9999 in UTC`,
    remedy: 'write a time within them, such as 2027-01-01T00:00:00Z',
    // Statuses hold times with a year of four digits; the API server refuses `+010000-01-01` there.
    holds: (self) => {
      const year = new Date(self).getUTCFullYear()
      return year >= 1 && year <= 9999
    },
  }
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

/** How far the record of an object has come; `describe` names the object. */
export const programmed = z.object({
  revision: z.int().min(0).describe('Revision of the projection that carries this generation.'),
  ready: z.int().min(0).describe('Gateway pods that have acknowledged it.'),
  total: z.int().min(0).describe('Gateway pods that serve.'),
})
