/** Reads the spend of every key from the Secrets, as a newly started operator does. */
import { SHARDS_LABEL } from '#contract/records/mounted-folder.ts'
import { type SpendEntry, spendCodec } from '../../operator/books/spend-entry.ts'
import { objectPath } from './kube-admin.ts'
import type { Stack } from './stack.ts'

/** @returns by uid of the ApiKey */
export async function durableSpend({ kube, operatorNamespace }: Stack): Promise<ReadonlyMap<string, SpendEntry>> {
  const query = `?labelSelector=${encodeURIComponent(`${SHARDS_LABEL}=spend`)}`
  const secrets = await kube.list(`${objectPath('v1', 'Secret', operatorNamespace)}${query}`)
  const shards = await Promise.all(secrets.map(({ data }) => spendCodec.decode(data as Record<string, string>)))
  return new Map(shards.flatMap(({ entries }) => entries.flatMap(({ entry }) => (entry ? [[entry.uid, entry] as const] : []))))
}
