import type { Lease } from './resources.ts'

/** Receives all annotations of the Lease. */
export type AnnotationListener = (annotations: Readonly<Record<string, string>>) => void
/** Annotations to set; null removes one. */
export type AnnotationPatch = Readonly<Record<string, string | null>>

/** Calls each listener when the annotations of the Lease differ from the annotations that this listener received last. */
export class AnnotationListeners {
  readonly #listeners: Array<{ readonly listener: AnnotationListener; last: string | undefined }> = []

  add(listener: AnnotationListener): void {
    this.#listeners.push({ listener, last: undefined })
  }

  /** @param lease as last read or written */
  changed(lease: Lease | undefined): void {
    if (!lease) return
    const annotations = lease.metadata.annotations ?? {}
    const text = JSON.stringify(Object.entries(annotations).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    for (const each of this.#listeners) {
      if (each.last === text) continue
      each.last = text
      each.listener(annotations)
    }
  }
}

/** A Lease with its annotations patched. */
export function withAnnotations(lease: Lease, patch: AnnotationPatch): Lease {
  const annotations = { ...lease.metadata.annotations }
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete annotations[name]
    else annotations[name] = value
  }
  return { ...lease, metadata: { ...lease.metadata, annotations } }
}
