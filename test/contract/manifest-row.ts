/** The shape of the table in `manifests.ts`. */

export const KEY_NAME = 'checkout-bot'

export interface ManifestRow {
  readonly name: string
  readonly manifest: Manifest
  readonly previous?: Manifest
  readonly refused?: string
  /** The rule that refuses the field, `<place>#<id>`; undefined: the schema refuses the field. */
  readonly rule?: string
  /** The spec with its defaults, for rows about defaults. */
  readonly spec?: Spec
}

export type Spec = Readonly<Record<string, unknown>>
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly spec?: unknown
  readonly [field: string]: unknown
}

export function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `model-${index}`)
}

/** An ApiKey for all models, unless the spec says otherwise. */
export function key(spec: Spec, more: Partial<Manifest> = {}): Manifest {
  return keyWithSpec({ models: ['*'], ...spec }, more)
}

export function keyWithSpec(spec: unknown, more: Partial<Manifest> = {}): Manifest {
  return { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: KEY_NAME }, spec, ...more }
}

/** A manifest that creates an object and is refused. @param rule undefined: the schema refuses the field */
export function refused(name: string, field: string, manifest: Manifest, rule?: string): ManifestRow {
  return { name, manifest, refused: field, ...(rule === undefined ? {} : { rule }) }
}
