/** Keyring Secrets that were written under another number of shards. Pure. */
import { decodeKeyringShard, type KeyringLine, keyringSecretName, RECORDS_KEY } from '../../gateway/shared/keyring-line.ts'
import type { Secret } from '../kube/resources.ts'

/** Label of every keyring Secret. */
export const KEYRING_LABEL = 'headgate.dev/keyring'

/** What another set holds, and the Secrets that may go once its lines have moved. */
export interface OtherSets {
  readonly lines: readonly KeyringLine[]
  readonly secrets: ReadonlyArray<{ readonly name: string; readonly uid: string }>
}

/**
 * Finds what `keyring.shards` left behind when it was changed.
 * @param present Secrets of the operator's namespace
 * @param warn told of a Secret that cannot be read; it stays where it is
 */
export function otherSets(present: readonly Secret[], shards: number, warn: (message: string) => void): OtherSets {
  const own = new Set(Array.from({ length: shards }, (_, index) => keyringSecretName(shards, index)))
  const newest = new Map<string, KeyringLine>()
  const found: Array<{ name: string; uid: string }> = []
  for (const secret of present) {
    const { name, uid = '', labels } = secret.metadata
    if (labels?.[KEYRING_LABEL] !== 'true' || own.has(name)) continue
    const lines = linesOf(secret)
    if (lines) found.push({ name, uid })
    else warn(`Secret ${name} of another keyring cannot be read; it is left as it is`)
    for (const line of lines ?? []) keepNewest(newest, line)
  }
  return { lines: [...newest.values()], secrets: found }
}

function keepNewest(newest: Map<string, KeyringLine>, line: KeyringLine): void {
  const known = newest.get(line.uid)
  if (!known || known.rev < line.rev) newest.set(line.uid, line)
}

function linesOf(secret: Secret): readonly KeyringLine[] | undefined {
  try {
    return decodeKeyringShard(Buffer.from(secret.data?.[RECORDS_KEY] ?? '', 'base64')).lines
  } catch {
    return undefined // named by the caller
  }
}
