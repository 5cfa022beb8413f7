import { describe, expect, test } from 'vitest'
import { apiKey, servedModel } from '../test/support/objects.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import type { Condition } from '#api/metadata.ts'
import type { KubeObject } from '#kube/port.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { reportOf, type ObjectReport } from './object-report.ts'

type Given = readonly [type: string, status: Condition['status'], reason: string, message?: string]

const withStatus = (object: KubeObject, observedGeneration: number, ...given: Given[]): KubeObject => {
  const conditions = given.map(([type, status, reason, message = `${reason}.`]) => ({
    type,
    status,
    reason,
    message,
    lastTransitionTime: '',
  }))
  return { ...object, status: { observedGeneration, conditions } } as KubeObject
}
const KEY = apiKey('bot', {}, { generation: 2 })
const keyReport = (...given: Given[]): ObjectReport => reportOf(apiKeyKind, withStatus(KEY, 2, ...given))
const modelReport = (...given: Given[]): ObjectReport =>
  reportOf(servedModelKind, withStatus(servedModel('llama', {}, { generation: 2 }), 2, ...given))

describe('the report of an object', () => {
  test('of a working object has no problem, and is current once the status describes the present manifest', () => {
    const report = keyReport(['Ready', 'True', 'Ready'], ['Accepted', 'True', 'Accepted'])
    expect(report).toEqual({ kind: 'ApiKey', name: 'shop/bot', isReady: true, isCurrent: true, problems: [] })
    expect(reportOf(apiKeyKind, KEY).isCurrent).toBe(false)
    expect(reportOf(apiKeyKind, withStatus(KEY, 1, ['Ready', 'True', 'Ready'])).isCurrent).toBe(false)
  })

  test('names a cause once, with its own reason, although Ready and others repeat its message', () => {
    const why = '"llama" belongs to ServedModel shop/old, which is older. Choose another name.'
    const report = modelReport(
      ['Ready', 'False', 'NotAccepted', why],
      ['Accepted', 'False', 'NameConflict', why],
      ['BackendsHealthy', 'False', 'NotAccepted', why],
      ['Stalled', 'True', 'NameConflict', why],
    )
    const condition = { type: 'Accepted', status: 'False' }
    expect(report.problems).toEqual([{ headline: 'not ready', reason: 'NameConflict', condition, text: why, weight: 'Warning' }])
  })

  test.each<[what: string, given: Given[], headlines: string[]]>([
    [
      'a problem of a key that works',
      [
        ['Ready', 'True', 'Ready'],
        ['SecretIssued', 'False', 'SecretMissing'],
      ],
      ['ready, but SecretIssued is False (SecretMissing): Warning'],
    ],
    [
      'two causes, and an unknown state',
      [
        ['Ready', 'False', 'Suspended'],
        ['Programmed', 'Unknown', 'StoreUnreachable'],
      ],
      ['not ready (Suspended): Wanted', 'Programmed is Unknown (StoreUnreachable): Warning'],
    ],
    [
      'a revocation before the issue once',
      [
        ['Ready', 'False', 'Revoked', 'a'],
        ['SecretIssued', 'False', 'Revoked', 'b'],
      ],
      ['not ready (Revoked): Wanted'],
    ],
    [
      'work under way',
      [
        ['Ready', 'False', 'SecretNotIssued', 'a'],
        ['SecretIssued', 'False', 'Pending', 'a'],
      ],
      ['not ready (Pending): Passing'],
    ],
  ])('names %s', (_, given, headlines) => {
    expect(keyReport(...given).problems.map(({ headline, reason, weight }) => `${headline} (${reason}): ${weight}`)).toEqual(headlines)
  })

  test('omits that a model has no price: keys that need one report it', () => {
    expect(modelReport(['Ready', 'True', 'Ready'], ['Priced', 'False', 'PriceMissing']).problems).toEqual([])
  })

  test('of a Service says that there are none without a cluster, and adds the remedy that another message lacks', () => {
    const why = 'backends[a].service: Service llama does not exist in this namespace. The backend is used as soon as it exists. More.'
    expect(modelReport(['Accepted', 'False', 'ServiceNotFound', why]).problems[0]?.text).toBe(
      'backends[a].service: there are no Services without a cluster. Write `url: http://<host>:<port>` instead of `service`. More.',
    )
    const [problem] = modelReport(['Accepted', 'False', 'Unreachable', 'It is so.']).problems
    expect(problem?.text).toBe('It is so. Start the model server, or correct the `url` of the backend.')
  })
})
