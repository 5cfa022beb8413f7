/** Where an object of the store came from. */
import type { KubeObject } from '../operator/kube/port.ts'

/** On every object that came from a folder: the file that holds the manifest. An object without it is not ours to change or delete. */
export const MANIFEST_ANNOTATION = 'headgate.dev/manifest'
/** The folder of that file, as an absolute path: objects of another folder are not deleted because this folder lacks their manifests. */
export const FOLDER_ANNOTATION = 'headgate.dev/manifest-folder'

/** File and folder of a manifest. */
export interface Origin {
  readonly path: string
  /** undefined: written by a version that did not note folders. */
  readonly folder: string | undefined
}

/** @returns undefined for an object that came from no folder */
export function originOf({ metadata }: KubeObject): Origin | undefined {
  const path = metadata.annotations?.[MANIFEST_ANNOTATION]
  return path === undefined ? undefined : { path, folder: metadata.annotations?.[FOLDER_ANNOTATION] }
}
