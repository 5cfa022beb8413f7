/**
 * Reads a text as the programs before limits did: format version 1, no features. This file never changes, so that it shows how such a pod
 * reads texts of today.
 */
import { z } from 'zod'

const head = z.object({ v: z.literal(1), needs: z.array(z.string()).max(0, 'a need that this version lacks').optional() })

const formerKeyRecord = head.extend({
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  st: z.enum(['Active', 'Suspended', 'Revoked']),
  exp: z.int().nonnegative().nullable(),
  gen: z.int().nonnegative(),
  models: z.array(z.array(z.string().min(1)).min(1)).min(1),
  ver: z.array(z.object({ id: z.string(), h: z.string(), exp: z.int().nullable() })).max(16),
})

const formerModelRecord = head.extend({
  served: z.string().min(1).max(253),
  backends: z.array(z.object({ name: z.string(), model: z.string(), w: z.int(), messages: z.enum(['Translate', 'Native']) })).min(1),
})

/** @throws ZodError for a text that such a pod does not use: it keeps its last good record and names the uid in its heartbeat */
export function readAsFormerKey(text: string): z.infer<typeof formerKeyRecord> {
  return formerKeyRecord.parse(JSON.parse(text))
}

/** @throws ZodError as above */
export function readAsFormerModel(text: string): z.infer<typeof formerModelRecord> {
  return formerModelRecord.parse(JSON.parse(text))
}
