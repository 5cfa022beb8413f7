import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../operator/kube/port.ts'
import { decideManifestChanges, MANIFEST_ANNOTATION } from './manifest-changes.ts'
import { readManifestFile, unreadableManifestFile } from './manifest-file.ts'

const key = (name: string, spec = 'models: [a]'): string =>
  `apiVersion: headgate.dev/v1alpha1\nkind: ApiKey\nmetadata: { name: ${name} }\nspec: { ${spec} }\n`
const present = (
  name: string,
  file: string | undefined,
  more: Partial<KubeObject['metadata']> = {},
  kind = 'ApiKey',
): KubeObject & { spec: object } => ({
  apiVersion: kind === 'Secret' ? 'v1' : 'headgate.dev/v1alpha1',
  kind,
  metadata: { name, namespace: 'default', ...(file === undefined ? {} : { annotations: { [MANIFEST_ANNOTATION]: file } }), ...more },
  spec: {},
})
const decide = (files: Record<string, string>, objects: readonly KubeObject[] = []) =>
  decideManifestChanges(
    Object.entries(files).map(([path, text]) => readManifestFile(path, text)),
    objects,
  )
const written = (changes: ReturnType<typeof decide>): string[] => changes.writes.map(({ object }) => object.metadata.name)
const removed = (changes: ReturnType<typeof decide>): string[] => changes.removals.map(({ ref }) => ref.name)

describe('decideManifestChanges', () => {
  it('takes every document of every file, with defaults filled in and the file noted', () => {
    const changes = decide({
      'a.yaml': `---\n${key('one')}---\n---\n${key('two')}`,
      'b.json': JSON.stringify({ kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'shop' } }),
    })
    expect(written(changes)).toEqual(['one', 'two', 'shop'])
    expect(changes.writes[0]?.object).toMatchObject({
      metadata: { name: 'one', namespace: 'default', annotations: { [MANIFEST_ANNOTATION]: 'a.yaml' } },
      spec: { state: 'Active', models: ['a'] },
    })
    expect(changes.complaints).toEqual([])
  })

  it('removes objects whose document is gone, and nothing that did not come from the folder', () => {
    const objects = [present('one', 'a.yaml'), present('gone', 'a.yaml'), present('own', undefined), present('s', undefined, {}, 'Secret')]
    const changes = decide({ 'a.yaml': key('one') }, objects)
    expect(removed(changes)).toEqual(['gone'])
  })

  it('an invalid document keeps the last good version and is named with file, field and remedy', () => {
    const changes = decide({ 'a.yaml': key('one', 'models: []') }, [present('one', 'a.yaml')])
    expect([written(changes), removed(changes)]).toEqual([[], []])
    expect(changes.complaints).toHaveLength(1)
    expect(changes.complaints[0]).toMatch(/^a\.yaml: ApiKey default\/one: spec\.models: .+; .+ \(the last valid version stays in force\)$/)
  })

  it('an invalid document does not hold up the others of its file', () => {
    expect(written(decide({ 'a.yaml': `${key('bad', 'modles: [a]')}---\n${key('good')}` }))).toEqual(['good'])
  })

  it('a file that is no YAML, or cannot be opened, keeps everything that came from it', () => {
    const changes = decideManifestChanges(
      [readManifestFile('a.yaml', 'a: [1'), unreadableManifestFile('b.yaml', 'permission denied')],
      [present('one', 'a.yaml'), present('two', 'b.yaml'), present('three', 'c.yaml')],
    )
    expect(removed(changes)).toEqual(['three'])
    expect(changes.complaints).toEqual([
      expect.stringMatching(/^a\.yaml: document 1: character \d+: is no YAML: .*; correct the syntax/),
      'b.yaml: file: file: permission denied; make it readable for this user (what came from this file stays in force)',
    ])
  })

  it('a document without a name keeps everything that came from its file', () => {
    const changes = decide({ 'a.yaml': 'kind: ApiKey\nspec: {}\n' }, [present('one', 'a.yaml')])
    expect(removed(changes)).toEqual([])
    expect(changes.complaints[0]).toContain('a.yaml: document 1: kind, metadata.name: is missing; write kind and metadata.name')
  })

  it('the first file by path wins a name, also while it is invalid; the other is named', () => {
    const changes = decide({ 'b.yaml': key('one', 'models: [b]'), 'a.yaml': key('one', 'models: []') })
    expect(written(changes)).toEqual([])
    expect(changes.complaints[0]).toBe('b.yaml: ApiKey default/one: metadata.name: is taken by a.yaml; remove one of the two')
  })

  it('rules about changes are checked against the stored object', () => {
    const revoked = { ...present('one', 'a.yaml'), spec: { state: 'Revoked' } }
    const changes = decide({ 'a.yaml': key('one', 'models: [a], state: Active') }, [revoked])
    expect(written(changes)).toEqual([])
    expect(changes.complaints[0]).toContain('spec.state: state is Revoked, which is final')
  })

  it('the successor of an object that is being deleted waits', () => {
    const changes = decide({ 'a.yaml': key('one') }, [present('one', 'a.yaml', { deletionTimestamp: '2026-01-01T00:00:00Z' })])
    expect(changes).toEqual({ writes: [], removals: [], complaints: [] })
  })

  it('names kinds that have no use here and Secrets that belong to the operator', () => {
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: { name: bot }\nstringData: { token: hush }\n'
    const changes = decide({ 'a.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: x }\n', 'b.yaml': secret }, [
      present('bot', undefined, {}, 'Secret'),
    ])
    expect(changes.complaints).toEqual([
      'a.yaml: Deployment default/x: kind: is not used without a cluster; remove the document',
      'b.yaml: Secret default/bot: metadata.name: is a Secret of the operator; choose another name',
    ])
    const [write] = decide({ 'b.yaml': secret }).writes
    expect(write?.object).toMatchObject({ type: 'Opaque', data: { token: Buffer.from('hush').toString('base64') } })
  })

  it('never quotes a value of a Secret', () => {
    const changes = decide({ 'b.yaml': 'apiVersion: v1\nkind: Secret\nmetadata: { name: bot }\ndata: { token: hush-hush }\n' })
    expect(changes.complaints[0]).toMatch(/^b\.yaml: Secret default\/bot: data\.token: /)
    expect(changes.complaints[0]).not.toContain('hush')
  })
})
