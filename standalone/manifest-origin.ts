/** The origin of an object in the store. */
import type { KubeObject } from '#kube/port.ts'

/** On every object from a folder: the file of its manifest. The folder never changes or deletes an object without this annotation. */
export const MANIFEST_ANNOTATION = 'headgate.dev/manifest'
/** The folder of that file, as an absolute path: objects of another folder are not deleted because this folder lacks their manifests. */
export const FOLDER_ANNOTATION = 'headgate.dev/manifest-folder'

/** File and folder of a manifest. */
export interface Origin {
  readonly path: string
  /** undefined: written by a version that did not store folders. */
  readonly folder: string | undefined
}

/** @returns undefined for an object that is not from a folder */
export function originOf({ metadata }: KubeObject): Origin | undefined {
  const path = metadata.annotations?.[MANIFEST_ANNOTATION]
  return path === undefined ? undefined : { path, folder: metadata.annotations?.[FOLDER_ANNOTATION] }
}
