/** metadata of a manifest that a user wrote, validated as the API server does. */
import { z } from 'zod'
import { matching } from './bounded.ts'
import { DNS_LABEL } from '#contract/values/name-patterns.ts'
import { DNS_SUBDOMAIN, isLabelKey, LABEL_VALUE } from './metadata.ts'

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

/** name, namespace (`default` if absent), labels and annotations; the other fields of ObjectMeta are accepted and dropped. */
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
