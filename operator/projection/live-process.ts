import { decodeAcknowledgement } from '#contract/records/revision-log.ts'
import type { LiveProcess } from './store.ts'

/**
 * Decodes one live process from its text in the store.
 * @param newest data set and revision of the store at that moment: a claim of a higher revision proves nothing
 */
export function liveProcess(process: string, text: string, newest: { readonly epoch: string; readonly revision: number }): LiveProcess {
  const slash = process.lastIndexOf('/')
  const pod = slash < 0 ? process : process.slice(0, slash)
  const acknowledgement = decodeAcknowledgement(text)
  if (acknowledgement?.epoch === newest.epoch && acknowledgement.revision > newest.revision)
    return { process, pod, acknowledgement: undefined, isAhead: true }
  return { process, pod, acknowledgement }
}
