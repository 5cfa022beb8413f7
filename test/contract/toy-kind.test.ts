/** A third kind, added by one folder (`test/support/toy-kind/`) and one row of the table of kinds. Everything below follows from that row. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { generatedFiles } from '../../generated-files.ts'
import type { ApiKind } from '#api/kind.ts'
import { API_KINDS } from '#api/kinds.ts'
import { KINDS } from '../../operator/kinds/kinds.ts'
import type { KindRow } from '../../operator/kinds/kind.ts'
import { operatorRights } from '../../operator/rights.ts'
import { rightsTemplate } from '../../operator/rights.ts'
import { decideManifestChanges } from '../../standalone/manifest-changes.ts'
import { parseManifestFile } from '../../standalone/manifest-documents.ts'
import { manifestKinds } from '../../standalone/manifest-kinds.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { StateFolder } from '../../standalone/state-folder.ts'
import { OperatorWorld } from '../support/operator-world.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { toyRow } from '../support/toy-kind/kind.ts'
import { addToyRecord, type Toy, TOY_RECORD, toyCodec, toyKind } from '../support/toy-kind/toy-kind.ts'
import { releaseAll } from '../../operator/kinds/release.ts'

let removeToyRecord: () => void
beforeAll(() => {
  removeToyRecord = addToyRecord()
})
afterAll(() => removeToyRecord())

const kinds: readonly ApiKind[] = [...API_KINDS, toyKind]
const clusterToy: ApiKind = { ...toyKind, resource: { ...toyKind.resource, namespaced: false } }

const CRD = 'crds/toys.headgate.dev.yaml'
const good = { apiVersion: 'headgate.dev/v1alpha1', kind: 'Toy', metadata: { name: 'train' }, spec: { pieces: 3 } }
const bad = { ...good, spec: { pieces: 3, sparePieces: 4 } }

describe('the generated files', () => {
  const files = generatedFiles(kinds)

  test('gain a CRD with schema, rules, columns and selectable fields, also as a template of the chart', () => {
    const added = [...files.keys()].filter((path) => !generatedFiles().has(path))
    expect(added).toEqual([CRD, 'charts/headgate/templates/crds/toys.headgate.dev.yaml'])
    expect(parse(files.get(CRD) ?? '')).toMatchObject({
      metadata: { name: 'toys.headgate.dev' },
      spec: {
        scope: 'Namespaced',
        names: { kind: 'Toy', listKind: 'ToyList', plural: 'toys', singular: 'toy', shortNames: ['ty'], categories: ['headgate'] },
        versions: [
          {
            additionalPrinterColumns: [{ name: 'Ready' }, { name: 'Age' }, { name: 'Color', priority: 1 }],
            selectableFields: [{ jsonPath: '.spec.color' }],
            schema: {
              openAPIV3Schema: {
                properties: {
                  spec: {
                    required: ['pieces'],
                    properties: { pieces: { minimum: 1, maximum: 100 }, color: { default: 'Red' } },
                    'x-kubernetes-validations': [{ message: 'sparePieces is above pieces: lower sparePieces or raise pieces' }],
                  },
                },
              },
            },
          },
        ],
      },
    })
  })

  test('gain a section of the reference page with fields, rules, conditions and columns', () => {
    const page = files.get('docs/reference.md') ?? ''
    const section = page.slice(page.indexOf('## Toy\n'), page.indexOf('## Events\n'))
    expect(section).toContain('A toy of a test. Namespaced, short name `ty`.')
    expect(section).toContain('| `spec.pieces` | integer | 1–100 | required | Number of pieces. |')
    expect(section).toContain('| fewer-spares | `spec.sparePieces` | sparePieces is above pieces: lower sparePieces or raise pieces |')
    expect(section).toContain('|  | Broken | False | A piece is missing. Buy another toy. |')
    expect(section).toContain('| Color (`-o wide`) | Its color. |')
  })

  test('follow the scope of the kind', () => {
    const cluster = generatedFiles([clusterToy])
    expect(parse(cluster.get(CRD) ?? '')).toMatchObject({ spec: { scope: 'Cluster' } })
    expect(cluster.get('docs/reference.md')).toContain('A toy of a test. Cluster-scoped, short name `ty`.')
  })
})

describe('standalone', () => {
  test('takes manifests of the kind', async () => {
    const known = manifestKinds(kinds)
    const changesOf = async (path: string, manifest: object) =>
      decideManifestChanges([await parseManifestFile(path, JSON.stringify(manifest), { kinds: known })], [], { kinds: known })
    const [first, second] = [await changesOf('a.yaml', good), await changesOf('b.yaml', bad)]
    expect(first.writes).toMatchObject([{ resource: toyKind.resource, object: { kind: 'Toy', spec: { color: 'Red' } } }])
    expect(second.complaints).toMatchObject([
      { path: 'b.yaml', line: expect.stringContaining('Toy default/train: spec.sparePieces: sparePieces is above pieces') },
    ])
  })

  test('identifies a cluster-scoped object by its name alone', async () => {
    const known = manifestKinds([clusterToy])
    const [document] = (await parseManifestFile('a.yaml', JSON.stringify(good), { kinds: known })).documents
    expect(document).toMatchObject({ title: 'Toy train', id: 'Toy//train' })
  })

  test('keeps objects of the kind over a restart', async () => {
    const root = temporaryFolder()
    const state = new StateFolder(root, kinds)
    const store = new ObjectStore({ persist: (change) => state.persist(change) })
    const toy: Toy = { ...good, metadata: { name: 'train', namespace: 'shop' }, spec: { color: 'Blue', pieces: 3, sparePieces: 0 } }
    await store.create(toyKind.resource, toy)
    state.close()
    const next = new StateFolder(root, kinds)
    expect(next.load()).toMatchObject([{ resource: toyKind.resource, object: { metadata: { name: 'train' }, spec: { color: 'Blue' } } }])
    next.close()
  })
})

describe('the operator', () => {
  const train: Toy = { ...good, metadata: { name: 'train', namespace: 'shop' }, spec: { color: 'Red', pieces: 3, sparePieces: 0 } }
  const rows: readonly KindRow[] = [...KINDS, toyRow]

  async function worldOf(table: readonly KindRow[]): Promise<OperatorWorld> {
    const world = new OperatorWorld(table)
    onTestFinished(() => world.stop())
    await world.start()
    return world
  }

  test('reports the state of a toy and follows its changes, with one write each', async () => {
    const world = await worldOf(rows)
    await world.apply(toyKind.resource, train)
    await world.settle()
    expect(await world.condition(toyKind.resource, 'train', 'Ready')).toBe('True Ready')

    await world.apply(toyKind.resource, { ...train, spec: { ...train.spec, sparePieces: 3 } })
    await world.settle()
    expect(await world.condition(toyKind.resource, 'train', 'Ready')).toBe('False Broken')
    expect(await world.message(toyKind.resource, 'train', 'Ready')).toBe('A piece is missing. Buy another toy.')
    expect(world.writes.filter((write) => write.startsWith('status toys'))).toEqual(['status toys train', 'status toys train'])
  })

  test('gives gateways the record of a toy, changes it, and takes it away before the toy is gone', async () => {
    const world = await worldOf(rows)
    const colors = async () => (await world.texts(TOY_RECORD)).map((text) => toyCodec.decode(text).color)
    await world.apply(toyKind.resource, train)
    await world.settle()
    expect(await colors()).toEqual(['Red'])
    const [present] = await world.objects.list(toyKind.resource, 'shop')
    expect(present?.metadata.finalizers).toEqual([toyKind.finalizer])
    await world.apply(toyKind.resource, { ...present!, spec: { ...train.spec, color: 'Blue' } })
    await world.settle()
    expect(await colors()).toEqual(['Blue'])
    await world.objects.remove(toyKind.resource, { namespace: 'shop', name: 'train' })
    await world.settle()
    expect([await colors(), await world.objects.list(toyKind.resource, 'shop')]).toEqual([[], []])
  })

  test('releases the toys when Headgate is uninstalled, and in namespaces that are no longer watched', async () => {
    const objects = new ObjectStore()
    const held = await objects.create(toyKind.resource, {
      ...train,
      metadata: { ...train.metadata, finalizers: [toyKind.finalizer ?? ''] },
    })
    expect(await releaseAll(toyKind, [held], { kube: objects })).toEqual({ released: 1, failed: 0 })
    expect((await objects.get(toyKind.resource, { namespace: 'shop', name: 'train' }))?.metadata.finalizers).toEqual([])
  })

  test('gains the rights that the kind needs, and no others', () => {
    const known = operatorRights(API_KINDS).map((right) => JSON.stringify(right))
    const added = operatorRights(kinds).filter((right) => !known.includes(JSON.stringify(right)))
    expect(added).toMatchObject([
      { where: 'watched', group: 'headgate.dev', resource: 'toys', verbs: ['list', 'watch'] },
      { where: 'watched', group: 'headgate.dev', resource: 'toys/status', verbs: ['patch'] },
      { where: 'watched', group: 'headgate.dev', resource: 'toys', verbs: ['get', 'patch'] },
      { where: 'watched', group: 'headgate.dev', resource: 'toys/finalizers', verbs: ['update'] },
      { where: 'former', group: 'headgate.dev', resource: 'toys', verbs: ['get', 'list', 'patch'] },
    ])
    expect(rightsTemplate(kinds)).toContain('resources: [toys/status]')
    expect(generatedFiles(kinds).get('charts/headgate/templates/_rights.tpl')).toBe(rightsTemplate(kinds))
  })
})
