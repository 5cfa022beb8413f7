import { beforeEach, describe, expect, test } from 'vitest'
import { ObjectStore } from '../../standalone/object-store.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { apiKey, SHOP } from '../../test/support/objects.ts'
import { FINALIZER } from '#api/apikey.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import { apiKeys } from '#api/resources.ts'
import { KubeError, type KubeObject } from '#kube/port.ts'
import { type FormerNamespacesDeps, releaseFormer } from './release.ts'

describe('namespaces that the administrator has given up', () => {
  let clock: ManualClock
  let objects: ObjectStore
  /** Namespaces that cannot be listed, and names that cannot be patched. */
  let refused: ReadonlySet<string>
  let events: string[]
  let notes: string[]
  let warnings: string[]

  let watchNamespaces: readonly string[]

  beforeEach(async () => {
    watchNamespaces = ['watched']
    clock = new ManualClock()
    objects = new ObjectStore({ now: () => clock.now() })
    refused = new Set()
    events = []
    notes = []
    warnings = []
    for (const namespace of [SHOP, 'bank', 'watched'])
      await objects.create(apiKeys, apiKey('bot', {}, { namespace, finalizers: [FINALIZER] }))
  })

  function release(formerNamespaces: readonly string[], stopped = new AbortController().signal): Promise<void> {
    const kube = new FakeKubePort(objects)
    kube.before = ({ verb, namespace, name }) => {
      if (verb === 'list' ? refused.has(namespace) : refused.has(name)) throw new KubeError('Forbidden', 403, 'no Role')
    }
    const log = { info: () => undefined, warn: (message: string) => void warnings.push(message) }
    const deps = {
      ...{ kube, clock, log, settings: { watchNamespaces, formerNamespaces } },
      recordEvent: ({ metadata }: KubeObject, reason: string, note: string) => {
        events.push(`${metadata.namespace ?? ''}/${metadata.name} ${reason}`)
        notes.push(note)
      },
    } as unknown as FormerNamespacesDeps
    return releaseFormer([apiKeyKind], deps, stopped)
  }

  async function held(): Promise<string[]> {
    const all = await objects.list(apiKeys, '')
    return all
      .filter(({ metadata }) => (metadata.finalizers ?? []).length > 0)
      .map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`)
  }

  test('lose the finalizer on all their ApiKeys, each with an Event; other namespaces do not change', async () => {
    await release([SHOP, 'bank'])
    expect(await held()).toEqual(['watched/bot'])
    expect(events.toSorted()).toEqual(['bank/bot Released', 'shop/bot Released'])
    for (const note of notes) expect(note).toMatch(/^scope\.formerNamespaces names the namespace/)
    expect(warnings).toEqual([])
  })

  test('keep the finalizers if they are watched again, although the list still names them', async () => {
    watchNamespaces = ['watched', SHOP]
    await release([SHOP, 'bank'])
    watchNamespaces = [] // all
    await release([SHOP])
    expect([await held(), events]).toEqual([['shop/bot', 'watched/bot'], ['bank/bot Released']])
  })

  test('are tried again every minute while a Role is missing, without delay for other namespaces; the log names the remedy', async () => {
    refused = new Set([SHOP])
    const releasing = release([SHOP, 'bank'])
    await clock.advance(0)
    expect(await held()).toEqual(['shop/bot', 'watched/bot'])
    expect(warnings).toEqual([expect.stringMatching(/namespace shop.*cannot be released \(no Role\).*scope\.formerNamespaces/)])
    refused = new Set()
    await clock.advance(60_000)
    await releasing
    expect(await held()).toEqual(['watched/bot'])
  })

  test('are not tried again once the operator has stopped', async () => {
    refused = new Set([SHOP])
    const stopping = new AbortController()
    const releasing = release([SHOP], stopping.signal)
    await clock.advance(0)
    stopping.abort()
    await releasing
    expect(warnings).toHaveLength(1)
  })

  test('are not tried again after ten tries', async () => {
    refused = new Set([SHOP])
    const releasing = release([SHOP])
    await clock.advance(3_600_000)
    await releasing
    expect(warnings).toHaveLength(10)
  })

  test('get one Event per ApiKey, only after its release', async () => {
    await objects.create(apiKeys, apiKey('stuck', {}, { finalizers: [FINALIZER] }))
    refused = new Set(['stuck'])
    const releasing = release([SHOP])
    await clock.advance(120_000)
    expect(events).toEqual(['shop/bot Released'])
    refused = new Set()
    await clock.advance(60_000)
    await releasing
    expect(events).toEqual(['shop/bot Released', 'shop/stuck Released'])
  })
})
