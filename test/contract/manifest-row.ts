/** The shape of the table in `manifests.ts`. */

/** One manifest and the expected result. */
export interface ManifestRow {
  /** A sentence: what a user is promised. */
  readonly name: string
  readonly manifest: Manifest
  /** The object as it was before; without it the manifest is a new object. */
  readonly previous?: Manifest
  /** Path of the field that is refused. Without it the manifest is accepted. */
  readonly refused?: string
  /** The rule that refuses it, `<place>#<id>`; without it the schema does. */
  readonly rule?: string
  /** The spec with its defaults, where that is the point of the row. */
  readonly spec?: Spec
}

/** A spec, or a part of one. */
export type Spec = Readonly<Record<string, unknown>>
/** A manifest as a user writes it. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly spec?: unknown
  readonly [field: string]: unknown
}

/** `count` different names. */
export function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `model-${index}`)
}
