import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decodeModelsFile } from '../../gateway/shared/keyring-line.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { modelText } from '../../test/support/records.ts'
import { KubeError } from '../kube/port.ts'
import { secrets } from '../kube/resources.ts'
import { GatewayFiles } from './gateway-files.ts'

const NAMESPACE = 'headgate'

describe('GatewayFiles', () => {
  let kube: FakeKubePort
  let clock: ManualClock
  let warnings: string[]
  let isLeading: boolean
  const running: GatewayFiles[] = []

  beforeEach(() => {
    clock = new ManualClock()
    kube = new FakeKubePort()
    warnings = []
    isLeading = true
  })
  afterEach(() => {
    for (const files of running.splice(0)) files.stop()
  })

  function make(): GatewayFiles {
    const assertLeading = (): void => {
      if (!isLeading) throw new Error('not the leader')
    }
    const files = new GatewayFiles({ kube, namespace: NAMESPACE, clock, assertLeading, warn: (message) => warnings.push(message) })
    running.push(files)
    return files
  }

  const later = (ms = 100) => clock.advance(ms)
  const writes = (): string[] =>
    kube.calls.filter(({ verb }) => verb === 'create' || verb === 'update').map(({ verb, name }) => `${verb} ${name}`)
  const data = async (name: string) => (await kube.get(secrets, { namespace: NAMESPACE, name }))?.data
  const models = async () => decodeModelsFile(Buffer.from((await data('hg-models'))?.['records'] ?? '', 'base64'))
  const token = (file: string, value: string) => ({ file, token: value })

  test('tells nothing until every model has been told, so that a restart never writes half a file', async () => {
    const files = make()
    files.setRecord('a', modelText('a'))
    await later()
    expect(kube.calls).toEqual([])
    files.start()
    await later()
    expect(await models()).toEqual([modelText('a')])
    expect(writes()).toEqual(['create hg-upstream', 'create hg-models'])
  })

  test('a restart that knows the same writes nothing, in whatever order the models come', async () => {
    const first = make()
    for (const uid of ['a', 'b']) first.setRecord(uid, modelText(uid))
    first.setTokens('a', [token('upstream.a.one', 'x')])
    first.start()
    await later()
    const before = writes().length
    const second = make()
    for (const uid of ['b', 'a']) second.setRecord(uid, modelText(uid))
    second.setTokens('a', [token('upstream.a.one', 'x')])
    second.start()
    await later()
    expect(writes()).toHaveLength(before)
  })

  test('changes that come together share a write, and what has not changed none', async () => {
    const files = make()
    files.start()
    await later()
    const before = writes().length
    for (const uid of ['a', 'b', 'c']) files.setRecord(uid, modelText(uid))
    await later()
    expect(writes().slice(before)).toEqual(['update hg-models'])
    files.setRecord('a', modelText('a'))
    files.setTokens('a', [])
    await later()
    expect(writes()).toHaveLength(before + 1)
  })

  test('a model that goes takes its record and its tokens along', async () => {
    const files = make()
    files.start()
    files.setRecord('a', modelText('a'))
    files.setTokens('a', [token('upstream.a.one', 'x')])
    files.setTokens('b', [token('upstream.b.one', 'y')])
    await later()
    expect(await data('hg-upstream')).toEqual({ 'upstream.a.one': 'eA==', 'upstream.b.one': 'eQ==' })
    files.setRecord('a', undefined)
    files.setTokens('a', [])
    await later()
    expect(await models()).toEqual([])
    expect(await data('hg-upstream')).toEqual({ 'upstream.b.one': 'eQ==' })
  })

  test('a write that fails is reported without the token and tried again', async () => {
    const files = make()
    kube.before = ({ verb }) => {
      if (verb === 'create') throw new KubeError('Unreachable', 0, 'no answer')
    }
    files.setTokens('a', [token('upstream.a.one', 'top-secret')])
    files.start()
    await later()
    expect(warnings).toEqual([expect.stringContaining('no answer')])
    expect(warnings.join()).not.toContain('top-secret')
    kube.before = () => undefined
    await later(2_000)
    expect(Object.keys((await data('hg-upstream')) ?? {})).toEqual(['upstream.a.one'])
  })

  test('a Secret that somebody changed or deleted between look and write is looked at again', async () => {
    const files = make()
    files.start()
    files.setRecord('a', modelText('a'))
    await later()
    kube.before = async ({ verb, name }) => {
      if (verb !== 'update') return
      kube.before = () => undefined
      await kube.remove(secrets, { namespace: NAMESPACE, name })
    }
    files.setRecord('b', modelText('b'))
    await later(200)
    expect(await models()).toHaveLength(2)
    expect(warnings).toEqual([])
  })

  test('a process that does not lead writes nothing', async () => {
    isLeading = false
    const files = make()
    files.setRecord('a', modelText('a'))
    files.start()
    await later()
    expect(kube.calls).toEqual([])
  })

  test('nothing is written after stop', async () => {
    const files = make()
    files.start()
    await later()
    const before = kube.calls.length
    files.setRecord('a', modelText('a'))
    files.stop()
    await later()
    expect(kube.calls).toHaveLength(before)
  })
})
