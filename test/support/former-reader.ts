/**
 * Reads a text as a program without limits would: format version 1, no features. After the first release this file never changes, so that it
 * shows how such a pod reads texts of today.
 */
import { z } from 'zod'

const head = z.object({ v: z.literal(1), needs: z.array(z.string()).max(0, 'a need that this version lacks').optional() })

const formerKeyRecord = head.extend({
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  state: z.enum(['Active', 'Suspended', 'Revoked']),
  expiresMs: z.int().nonnegative().nullable(),
  generation: z.int().nonnegative(),
  models: z.array(z.array(z.string().min(1)).min(1)).min(1),
  verifiers: z.array(z.object({ id: z.string(), hash: z.string(), expiresMs: z.int().nullable() })).max(16),
})

const formerModelRecord = head.extend({
  servedName: z.string().min(1).max(253),
  backends: z
    .array(z.object({ name: z.string(), upstreamModel: z.string(), weight: z.int(), messages: z.enum(['Translate', 'Native']) }))
    .min(1),
})

/** @throws ZodError for a text that such a pod does not use: it keeps its last good record and names the uid in its heartbeat */
export function readAsFormerKey(text: string): z.infer<typeof formerKeyRecord> {
  return formerKeyRecord.parse(JSON.parse(text))
}

/** @throws ZodError as above */
export function readAsFormerModel(text: string): z.infer<typeof formerModelRecord> {
  return formerModelRecord.parse(JSON.parse(text))
}
