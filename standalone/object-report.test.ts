import { describe, expect, test } from 'vitest'
import { apiKey, servedModel } from '../test/support/objects.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import type { KubeObject } from '#kube/port.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { reportOf, type ObjectReport } from './object-report.ts'

/** @param given `type status reason message`; the message may be left out */
const withStatus = (object: KubeObject, observedGeneration: number, ...given: string[]): KubeObject => {
  const conditions = given.map((text) => {
    const [type, status, reason, ...message] = text.split(' ')
    return { type, status, reason, message: message.join(' ') || `${reason}.`, lastTransitionTime: '' }
  })
  return { ...object, status: { observedGeneration, conditions } } as KubeObject
}
const KEY = apiKey('bot', {}, { generation: 2 })
const keyReport = (...given: string[]): ObjectReport => reportOf(apiKeyKind, withStatus(KEY, 2, ...given))
const modelReport = (...given: string[]): ObjectReport =>
  reportOf(servedModelKind, withStatus(servedModel('llama', {}, { generation: 2 }), 2, ...given))

describe('the report of an object', () => {
  test('of a working object has no problem, and is current once the status describes the present manifest', () => {
    const report = keyReport('Ready True Ready', 'Accepted True Accepted')
    expect(report).toEqual({ kind: 'ApiKey', name: 'shop/bot', isReady: true, isCurrent: true, problems: [] })
    expect(reportOf(apiKeyKind, KEY).isCurrent).toBe(false)
    expect(reportOf(apiKeyKind, withStatus(KEY, 1, 'Ready True Ready')).isCurrent).toBe(false)
  })

  test('names a cause once, with its own reason, although Ready and others repeat its message', () => {
    const why = '"llama" belongs to ServedModel shop/old, which is older. Choose another name.'
    const report = modelReport(
      `Ready False NotAccepted ${why}`,
      `Accepted False NameConflict ${why}`,
      `BackendsHealthy False NotAccepted ${why}`,
      `Stalled True NameConflict ${why}`,
    )
    const condition = { type: 'Accepted', status: 'False' }
    expect(report.problems).toEqual([{ headline: 'not ready', reason: 'NameConflict', condition, text: why, weight: 'Warning' }])
  })

  test.each([
    [['Ready True Ready', 'SecretIssued False SecretMissing'], 'ready, but SecretIssued is False (SecretMissing): Warning'],
    [['Ready False Suspended'], 'not ready (Suspended): Wanted'],
    [['Programmed Unknown StoreUnreachable'], 'Programmed is Unknown (StoreUnreachable): Warning'],
    [['Ready False Revoked a', 'SecretIssued False Revoked b'], 'not ready (Revoked): Wanted'],
    [['Ready False SecretNotIssued a', 'SecretIssued False Pending a'], 'not ready (Pending): Passing'],
    [
      ['Ready False NotAccepted a', 'Accepted False InvalidTimeZone a', 'SecretIssued False Pending a', 'Programmed False Pending a'],
      'not ready (InvalidTimeZone): Warning',
    ],
    [['Ready False PriceMissing a', 'LimitsEnforceable False PriceMissing b'], 'not ready (PriceMissing): Warning'],
  ])('turns %j into one problem: %s', (given, problem) => {
    const { problems } = keyReport(...given)
    expect(problems.map(({ headline, reason, weight }) => `${headline} (${reason}): ${weight}`)).toEqual([problem])
  })

  test('omits that a model has no price: keys that need one report it', () => {
    expect(modelReport('Ready True Ready', 'Priced False PriceMissing').problems).toEqual([])
  })

  test('of a Service says that there are none without a cluster, and adds the remedy that another message lacks', () => {
    const why = 'backends[a].service: Service llama does not exist in this namespace. The backend is used as soon as it exists. More.'
    expect(modelReport(`Accepted False ServiceNotFound ${why}`).problems[0]?.text).toBe(
      'backends[a].service: there are no Services without a cluster. Write `url: http://<host>:<port>` instead of `service`. More.',
    )
    const [problem] = modelReport('Accepted False Unreachable It is so.').problems
    expect(problem?.text).toBe('It is so. Start the model server, or correct the `url` of the backend.')
  })
})
