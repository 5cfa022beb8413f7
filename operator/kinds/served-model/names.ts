/** The names under which clients can call a ServedModel. Served names and aliases share one namespace. Pure. */
import type { ServedModel } from '#api/served-model.ts'

export function servedName(model: ServedModel): string {
  return model.spec.servedName ?? model.metadata.name
}

export function namesOf(model: ServedModel): readonly string[] {
  return [...new Set([servedName(model), ...(model.spec.aliases ?? [])])]
}
