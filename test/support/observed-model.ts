/** Builders of an observed ServedModel. */
import type { ServedModel } from '#api/served-model.ts'
import type { ModelSurroundings, ObservedBackend } from '../../operator/kinds/served-model/observed.ts'

/** A model that has its place and its names, in a namespace that publishes nothing. */
export function surroundings(
  model: ServedModel,
  backends: readonly ObservedBackend[],
  change: Partial<ModelSurroundings> = {},
): ModelSurroundings {
  const place = { hasPlace: true, namespaceLimit: 200, publishing: 'Private', lostNames: [], selectedNamespaces: [] } as const
  const installation = { addresses: { allowLoopback: false }, secret: 'secret of the installation' }
  return { model, backends, ...place, mountRefusal: undefined, ...installation, ...change }
}
