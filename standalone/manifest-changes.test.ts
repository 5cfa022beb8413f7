import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube/port.ts'
import { decideManifestChanges, FOLDER_ANNOTATION, MANIFEST_ANNOTATION } from './manifest-changes.ts'
import type { ManifestChanges, ManifestOptions } from './manifest-changes.ts'
import { parseManifestFile, unreadableFile } from './manifest-documents.ts'

const key = (name: string, spec = 'models: [a]'): string =>
  `apiVersion: headgate.dev/v1alpha1\nkind: ApiKey\nmetadata: { name: ${name} }\nspec: { ${spec} }\n`
const present = (name: string, file: string | undefined, more: Partial<KubeObject['metadata']> = {}, kind = 'ApiKey') => ({
  apiVersion: kind === 'Secret' ? 'v1' : 'headgate.dev/v1alpha1',
  kind,
  metadata: { name, namespace: 'default', ...(file === undefined ? {} : { annotations: { [MANIFEST_ANNOTATION]: file } }), ...more },
  spec: {},
})
const decide = async (files: Record<string, string>, objects: readonly KubeObject[] = [], options: ManifestOptions = {}) =>
  decideManifestChanges(await Promise.all(Object.entries(files).map(([path, text]) => parseManifestFile(path, text))), objects, options)
const complaints = (changes: ManifestChanges): string[] => changes.complaints.map(({ line }) => line)
const written = (changes: ManifestChanges): string[] => changes.writes.map(({ object }) => object.metadata.name)
const removed = (changes: ManifestChanges): string[] => changes.removals.map(({ ref }) => ref.name)

describe('decideManifestChanges', () => {
  it('takes every document of every file, with defaults filled in and the file noted', async () => {
    const changes = await decide({
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

  it('removes objects whose document was deleted, and no object from elsewhere', async () => {
    const objects = [present('one', 'a.yaml'), present('old', 'a.yaml'), present('own', undefined), present('s', undefined, {}, 'Secret')]
    const changes = await decide({ 'a.yaml': key('one') }, objects)
    expect(removed(changes)).toEqual(['old'])
  })

  it('an invalid document keeps the last valid version of its object, and all other documents are in force', async () => {
    const changes = await decide({ 'a.yaml': `${key('bad', 'modles: [a]')}---\n${key('good')}` }, [present('bad', 'a.yaml')])
    expect([written(changes), removed(changes)]).toEqual([['good'], []])
    expect(complaints(changes)[0]).toMatch(/^a\.yaml:4:9: ApiKey default\/bad: spec\.modles: .*the last valid version stays in force\)$/)
  })

  it('a file that is not YAML, or cannot be opened, keeps all its objects', async () => {
    const readable = [await parseManifestFile('a.yaml', 'a: [1'), await parseManifestFile('d.yaml', key('four'))]
    const files = [...readable, unreadableFile('b.yaml', 'may not be read', 'allow it')]
    const changes = await decideManifestChanges(files, [present('one', 'a.yaml'), present('two', 'b.yaml'), present('three', 'c.yaml')])
    expect(removed(changes)).toEqual(['three'])
    expect(complaints(changes)).toEqual([
      'a.yaml:1:6: document 1: a bracket is not closed, or the next line is not indented below it; close the bracket (objects from this file stay in force)',
      'b.yaml: may not be read; allow it (objects from this file stay in force)',
    ])
  })

  it('a document without a name keeps all objects of its file', async () => {
    const changes = await decide({ 'a.yaml': 'kind: ApiKey\nspec: {}\n' }, [present('one', 'a.yaml')])
    expect(removed(changes)).toEqual([])
    expect(complaints(changes)[0]).toContain('a.yaml:1:1: document 1: metadata: is missing; add it')
  })

  it('the first file by path wins a name, also while it is invalid; the other is named', async () => {
    const changes = await decide({ 'b.yaml': key('one', 'models: [b]'), 'a.yaml': key('one', 'models: []') })
    expect(written(changes)).toEqual([])
    expect(complaints(changes)[0]).toBe(
      'b.yaml:3:13: ApiKey default/one: metadata.name: is the name of document 1 of a.yaml too, which is in force; rename or remove one of the two',
    )
  })

  it('rules about changes are checked against the stored object', async () => {
    const revoked = { ...present('one', 'a.yaml'), spec: { state: 'Revoked' } }
    const changes = await decide({ 'a.yaml': key('one', 'models: [a], state: Active') }, [revoked])
    expect(written(changes)).toEqual([])
    expect(complaints(changes)[0]).toContain('spec.state: state is Revoked, which is final')
  })

  it('a new object waits until the old one of its name is deleted', async () => {
    const changes = await decide({ 'a.yaml': key('one') }, [present('one', 'a.yaml', { deletionTimestamp: '2026-01-01T00:00:00Z' })])
    expect(changes).toEqual({ writes: [], removals: [], complaints: [] })
  })

  it('takes Secrets, but not in place of those of the operator', async () => {
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: { name: bot }\nstringData: { token: hush }\n'
    const changes = await decide({ 'b.yaml': secret }, [present('bot', undefined, {}, 'Secret')])
    expect(complaints(changes)).toEqual([
      'b.yaml:3:13: Secret default/bot: metadata.name: is a Secret of the operator; choose another name',
    ])
    const [write] = (await decide({ 'b.yaml': secret })).writes
    expect(write?.object).toMatchObject({ type: 'Opaque', data: { token: Buffer.from('hush').toString('base64') } })
  })

  it('does not show a credential that is written as the name of an object', async () => {
    const [line = ''] = complaints(await decide({ 'a.yaml': key('sk-Hush') }))
    expect(line).toMatch(/^a\.yaml:3:13: ApiKey …: metadata\.name: is not a valid name; /)
    expect(line).not.toMatch(/hush/i)
  })

  it('never shows a value of a Secret, whatever its error', async () => {
    const secret = (rest: string): string => `apiVersion: v1\nkind: Secret\nmetadata: { name: bot }\n${rest}\n`
    for (const rest of [
      'data: { token: hush-hush }',
      'data: hush-hush',
      'stringData: { token: 123454321 }',
      'stringData: { token: *hush }',
      'type: 123454321',
      'stringData: { sk-hush-hush }',
    ]) {
      const [line = ''] = complaints(await decide({ 'b.yaml': secret(rest) }))
      expect(line).toMatch(/^b\.yaml:4:\d+: .+; .+/)
      expect(line).not.toMatch(/hush|12345/)
    }
  })
})

describe('accidents that delete nothing', () => {
  const HERE = { folder: '/here', shownFolder: 'here' }
  const from = (name: string, file: string, folder: string): KubeObject =>
    present(name, file, { annotations: { [MANIFEST_ANNOTATION]: file, [FOLDER_ANNOTATION]: folder } })

  it.each(['# models: [a]\n', '---\n---\n'])('%j keeps the objects of that file, and the line says how to delete them', async (text) => {
    const changes = await decide({ 'a.yaml': text, 'b.yaml': key('two') }, [present('one', 'a.yaml'), present('old', 'b.yaml')])
    expect(removed(changes)).toEqual(['old'])
    expect(complaints(changes)).toEqual([
      'a.yaml: the file holds no manifest; ApiKey default/one stays in force; restore the manifest, or delete the file to delete its objects',
    ])
  })

  it('a folder without manifests keeps everything, unless PRUNE_ALL is set', async () => {
    const objects = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => from(name, 'a.yaml', '/here'))
    const kept = await decide({}, objects, HERE)
    expect(removed(kept)).toEqual([])
    expect(complaints(kept)).toEqual([
      'here: the folder holds no manifest; ApiKey default/a, ApiKey default/b, ApiKey default/c, ApiKey default/d, ApiKey default/e and 1 more stay in force; restore the manifests, or set PRUNE_ALL=true to delete all objects from them',
    ])
    expect(removed(await decide({}, objects, { ...HERE, prunesAll: true }))).toHaveLength(6)
  })

  it('a folder with only unused kinds counts as one without manifests', async () => {
    const service = 'apiVersion: v1\nkind: Service\nmetadata: { name: x }\n'
    expect(removed(await decide({ 'a.yaml': service }, [from('one', 'b.yaml', '/here')], HERE))).toEqual([])
  })

  it('an object that the new folder has too belongs to the new folder from then on', async () => {
    const changes = await decide({ 'b.yaml': key('one') }, [from('one', 'a.yaml', '/former')], HERE)
    expect(changes.complaints).toEqual([])
    expect(changes.writes[0]?.object.metadata.annotations).toMatchObject({ [MANIFEST_ANNOTATION]: 'b.yaml', [FOLDER_ANNOTATION]: '/here' })
  })

  it('distinguishes a deleted file from a missing document of a file', async () => {
    const changes = await decide({ 'a.yaml': key('one') }, [present('two', 'a.yaml'), present('three', 'b.yaml')])
    expect(changes.removals.map(({ ref, isFileThere }) => [ref.name, isFileThere])).toEqual([
      ['two', true],
      ['three', false],
    ])
  })
})
