/** The bytes of the keyring Secrets and of Redis. Tests of formats read and write them without the product's own readers. */
import { gunzipSync, gzipSync } from 'node:zlib'
import { SHARDS_LABEL } from '#contract/records/mounted-folder.ts'
import { type SpendEntry, spendCodec } from '../../operator/shards/spend-entry.ts'
import { objectPath, type TestObject } from './kube-admin.ts'
import type { Stack } from './stack.ts'

const KEYRING = /^hg-keyring-\d+-\d+$/

export interface StoredEntry {
  readonly secret: string
  readonly key: string
  readonly text: string
}

export async function keyringSecrets(stack: Stack): Promise<string[]> {
  const secrets = await stack.kube.list(objectPath('v1', 'Secret', stack.operatorNamespace))
  return secrets.map(({ metadata }) => metadata.name).filter((name) => KEYRING.test(name))
}

/** Every entry of the keyring, headers left out. */
export async function keyringEntries(stack: Stack): Promise<StoredEntry[]> {
  const secrets = await stack.kube.list(objectPath('v1', 'Secret', stack.operatorNamespace))
  return secrets
    .filter(({ metadata }) => KEYRING.test(metadata.name))
    .flatMap(({ metadata, data }) =>
      Object.entries((data ?? {}) as Record<string, string>).flatMap(([key, packed]) =>
        linesOf(packed)
          .slice(1)
          .map((text) => ({ secret: metadata.name, key, text })),
      ),
    )
}

/** Replaces the text of one entry, leaving every other byte of the shard's text as it is. */
export async function replaceEntry(stack: Stack, entry: StoredEntry, text: string): Promise<void> {
  const path = objectPath('v1', 'Secret', stack.operatorNamespace, entry.secret)
  const secret = await stack.kube.get(path)
  const lines = linesOf((secret?.data as Record<string, string> | undefined)?.[entry.key] ?? '')
  if (!lines.includes(entry.text)) throw new Error(`the entry does not stand in ${entry.secret} any more`)
  const packed = gzipSync(lines.map((line) => (line === entry.text ? text : line)).join('\n')).toString('base64')
  await stack.kube.merge(path, { data: { [entry.key]: packed } })
}

/** Key records in Redis by uid, as text. */
export async function storedRecords(stack: Stack): Promise<Record<string, string>> {
  return stack.redis.admin.hgetall(await recordsKey(stack))
}

export async function storeRecord(stack: Stack, uid: string, text: string): Promise<void> {
  await stack.redis.admin.hset(await recordsKey(stack), uid, text)
}

export async function spendSecrets({ kube, operatorNamespace }: Stack): Promise<TestObject[]> {
  return kube.list(`${objectPath('v1', 'Secret', operatorNamespace)}?labelSelector=${encodeURIComponent(`${SHARDS_LABEL}=spend`)}`)
}

/** The spend of every key in the Secrets, by uid, as a newly started operator reads it. */
export async function durableSpend(stack: Stack): Promise<ReadonlyMap<string, SpendEntry>> {
  const secrets = await spendSecrets(stack)
  const shards = await Promise.all(secrets.map(({ data }) => spendCodec.decode(data as Record<string, string>)))
  return new Map(shards.flatMap(({ entries }) => entries.flatMap(({ entry }) => (entry ? [[entry.uid, entry] as const] : []))))
}

async function recordsKey(stack: Stack): Promise<string> {
  const epoch = await stack.redis.admin.hget('hg:{proj}:meta', 'epoch')
  if (epoch === null) throw new Error('Redis holds no projection')
  return `hg:{proj}:${epoch}:keys`
}

function linesOf(packed: string): string[] {
  return gunzipSync(Buffer.from(packed, 'base64')).toString('utf8').split('\n')
}
