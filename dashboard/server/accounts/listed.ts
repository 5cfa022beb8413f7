/** A cache before its first list: it lacks objects that exist, and no answer may say that they do not. */
import { type Informer, KubeError } from '#kube/port.ts'

/** @param namespace empty: all @param noun as in "the Accounts" @throws KubeError Unreachable if the objects have not been listed yet */
export function assertListed(informer: Pick<Informer, 'isSynced'>, namespace: string, noun: string): void {
  if (!informer.isSynced(namespace)) throw new KubeError('Unreachable', 0, `the ${noun} have not been listed yet`)
}
