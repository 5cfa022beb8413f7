/** Reads Redis and Events over connections of the tests' own. */
import { decodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import { objectPath } from './kube-admin.ts'
import type { Stack } from './stack.ts'

export interface ProjectionHead {
  readonly epoch: string
  readonly revision: number
  readonly fence: number
}

/** @throws when there is none */
export async function projectionHead(stack: Stack): Promise<ProjectionHead> {
  const { epoch, rev, fence } = await stack.redis.admin.hgetall('hg:{proj}:meta')
  if (epoch === undefined) throw new Error('Redis holds no projection')
  return { epoch, revision: Number(rev), fence: Number(fence) }
}

export async function projectedKeys(stack: Stack): Promise<KeyRecord[]> {
  const { epoch } = await projectionHead(stack)
  return Object.values(await stack.redis.admin.hgetall(`hg:{proj}:${epoch}:keys`)).map(decodeKeyRecord)
}

export interface SeenHeartbeat {
  readonly epoch: string
  readonly source: string
  readonly ready: boolean
}

/** Heartbeats by pod name; of several processes of a pod the last one listed. */
export async function heartbeats(stack: Stack): Promise<Map<string, SeenHeartbeat>> {
  const all = Object.entries(await stack.redis.admin.hgetall('hg:{proj}:acks'))
  return new Map(all.map(([process, text]) => [process.split('/')[0] ?? '', JSON.parse(text) as SeenHeartbeat]))
}

export async function eventsAbout(stack: Stack, name: string): Promise<{ reason: string; note: string }[]> {
  const events = await stack.kube.list(objectPath('events.k8s.io/v1', 'Event', stack.namespace))
  return events
    .filter((event) => (event.regarding as { name?: string } | undefined)?.name === name)
    .map(({ reason, note }) => ({ reason: String(reason), note: String(note) }))
}
