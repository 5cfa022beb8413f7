import { describe, expect, it } from 'vitest'
import { readManifestFile } from './manifest-file.ts'
import { parseManifestFile } from './manifest-parser.ts'
import { turnsDuring } from '../test/support/turns-during.ts'

const key = (name: string): string =>
  `apiVersion: headgate.dev/v1alpha1\nkind: ApiKey\nmetadata: { name: ${name} }\nspec: { models: [a] }\n`
const keys = (count: number): string => Array.from({ length: count }, (_, index) => key(`k${index}`)).join('---\n')
const { signal } = new AbortController()

describe('a large manifest file', () => {
  it('has the documents that a small one would have, errors included, whatever the number of batches', async () => {
    const text = `${keys(2_345)}---\nkind: ApiKey\n---\n${key('last')}`
    expect(await parseManifestFile('a.yaml', text, signal)).toEqual(readManifestFile('a.yaml', text))
  })

  it('is parsed while the event loop turns', async () => {
    const text = keys(5_000)
    const atOnce = await turnsDuring(async () => void readManifestFile('a.yaml', text))
    const inThread = await turnsDuring(() => parseManifestFile('a.yaml', text, signal))
    expect(atOnce).toBe(0)
    expect(inThread).toBeGreaterThan(100)
  })

  it('is given up at once when the program ends', async () => {
    const stopping = new AbortController()
    const parsed = parseManifestFile('a.yaml', keys(20_000), stopping.signal)
    stopping.abort(new Error('the program ends'))
    await expect(parsed).rejects.toThrow('the program ends')
    await expect(parseManifestFile('a.yaml', keys(2_000), stopping.signal)).rejects.toThrow('the program ends')
  })

  it('is parsed at once when it is small', async () => {
    const text = keys(10)
    expect(await parseManifestFile('a.yaml', text, signal)).toEqual(readManifestFile('a.yaml', text))
  })
})
