import { expect, test } from 'vitest'
import { isOlder } from './age-list.ts'
import { type NamedModel, ModelNames, namedModel } from './model-names.ts'

const NAMESPACES = ['bank', 'mill', 'shop', 'zoo']
const NAMES = ['llama', 'qwen', 'small']

/** A model whose namespaces and names follow from its number. */
function model(number: number): NamedModel {
  const at = <T>(list: readonly T[], by: number): T => list[Math.floor(number / by) % list.length] as T
  const allowed = at<'*' | string[]>([[], '*', ['mill'], ['bank', 'zoo'], []], 7)
  const namespace = at(NAMESPACES, 1)
  return namedModel({
    uid: `m${(number * 37) % 100}`,
    createdMs: (number * 13) % 10,
    namespace,
    servedName: at(NAMES, 3),
    aliases: number % 5 === 0 ? [at(NAMES, 2)] : [],
    allowedNamespaces: allowed === '*' ? '*' : [namespace, ...allowed],
  })
}

test('a name means the oldest model of its own namespace, else the oldest one that admits it, however models come and go', () => {
  const models = new ModelNames()
  const present = new Set<NamedModel>()
  const byReading = (namespace: string, name: string): NamedModel | undefined => {
    const found = [...present].filter((one) => one.names.includes(name)).toSorted((a, b) => (isOlder(a, b) ? -1 : 1))
    return found.find((one) => one.namespace === namespace) ?? found.find((one) => one.admits(namespace))
  }
  const all = Array.from({ length: 100 }, (_, number) => model(number))
  for (const [step, one] of [...all, ...all.toReversed()].entries()) {
    if (step < all.length) models.add(one)
    else models.delete(one)
    if (step < all.length) present.add(one)
    else present.delete(one)
    for (const namespace of [...NAMESPACES, 'other'])
      for (const name of NAMES) expect(models.resolve(namespace, name)).toBe(byReading(namespace, name))
  }
  expect([...models.names]).toEqual([])
})

test('a look-up reads no models of other namespaces that are closed to it', () => {
  const models = new ModelNames()
  let asked = 0
  for (let at = 0; at < 5_000; at += 1) {
    const one = { uid: `m${at}`, createdMs: at, namespace: `ns-${at}`, names: ['llama'], openTo: 'None' } as const
    models.add({ ...one, admits: () => (asked += 1) < 0 })
  }
  expect([models.resolve('ns-4999', 'llama')?.uid, models.resolve('other', 'llama'), asked]).toEqual(['m4999', undefined, 0])
})
