/** Settings that list namespaces. */
import { z } from 'zod'
import { DNS_LABEL } from './name-patterns.ts'

/** Name of a namespace or a Service. */
export const label: z.ZodString = z.string().regex(new RegExp(DNS_LABEL), 'is not a valid name of a Kubernetes object')

/** Names of namespaces, separated by commas. @param more a word that is accepted too */
export function namesOf(more?: string) {
  const name = label.or(z.literal(more ?? ''))
  const names = z.string().transform((list) => list.split(',').flatMap((each) => each.trim() || []))
  return names.refine((list) => list.every((each) => name.safeParse(each).success), 'contains an invalid namespace name').default(() => [])
}
