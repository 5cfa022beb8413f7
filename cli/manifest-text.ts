/** Manifests as text. */
import { stringify } from 'yaml'

/** kubectl reads YAML 1.1: an alias `no` must be quoted. */
const AS_KUBECTL_READS = { version: '1.1', lineWidth: 0 } as const

/** YAML with a line break at its end: `make run` takes a file without one for half a file. */
export function manifestText(manifest: unknown): string {
  return stringify(manifest, AS_KUBECTL_READS)
}
