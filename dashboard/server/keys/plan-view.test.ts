import { expect, test } from 'vitest'
import type { Account } from '#api/account.ts'
import type { Plan } from '#api/plan.ts'
import type { ServedModel } from '#api/served-model.ts'
import { planView } from './plan-view.ts'

const NAMESPACE = 'headgate-accounts'
const account = { metadata: { name: 'u-1' }, spec: { planRef: { name: 'default' } } } as Account
const plan = { metadata: { name: 'default' }, spec: { models: ['*'], maxKeys: 20 } } as unknown as Plan
const ALL = { from: 'All' }
const byLabels = (matchLabels: object): object => ({ from: 'Selector', selector: { matchLabels } })

/** @param reason of a False condition Accepted; undefined: the operator has not seen the model */
function model(namespace: string, allowedNamespaces: object, reason?: string): ServedModel {
  const conditions = reason === undefined ? [] : [{ type: 'Accepted', status: 'False', reason }]
  return {
    metadata: { name: 'llama', namespace },
    spec: { backends: [], allowedNamespaces },
    status: { conditions },
  } as unknown as ServedModel
}

function shown(...models: readonly ServedModel[]): readonly string[] {
  return planView({ account, plan, models, namespace: NAMESPACE, currency: 'EUR', nowMs: 0 }).models.map(({ name }) => name)
}

test('a model is shown with each of its prices', () => {
  const pricing = {
    ...{ inputPerMillion: '3', cachedInputPerMillion: '0.3', cacheWritePerMillion: '3.75' },
    ...{ outputPerMillion: '15', perRequest: '0.002' },
  }
  const priced = model(NAMESPACE, ALL)
  const models = [{ ...priced, spec: { ...priced.spec, pricing } }]
  expect(planView({ account, plan, models, namespace: NAMESPACE, currency: 'EUR', nowMs: 0 }).models).toEqual([
    { name: 'llama', price: { input: '3', cachedInput: '0.3', cacheWrite: '3.75', output: '15', perRequest: '0.002' } },
  ])
})

test.each<[string, ServedModel, boolean]>([
  ['of the namespace of the keys', model(NAMESPACE, { from: 'Same' }), true],
  ['of that namespace, which opens it to others without the right to', model(NAMESPACE, ALL, 'PublishingNotAllowed'), true],
  ['that is open to all namespaces', model('models', ALL), true],
  ['that is open to the namespace by its name', model('models', byLabels({ 'kubernetes.io/metadata.name': NAMESPACE })), true],
  ['of another namespace alone', model('models', { from: 'Same' }), false],
  ['that is open to another namespace', model('models', byLabels({ 'kubernetes.io/metadata.name': 'shop' })), false],
  ['that is open to namespaces by other labels', model('models', byLabels({ team: 'a' })), false],
  ['whose namespace may not open it to others', model('models', ALL, 'PublishingNotAllowed'), false],
])('a model %s is in the plan only if keys may call it', (_what, one, isShown) => {
  expect(shown(one)).toEqual(isShown ? ['llama'] : [])
})
