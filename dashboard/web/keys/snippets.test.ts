import { describe, expect, it } from 'vitest'
import { PLAN } from './sample.ts'
import { modelFor, snippets } from './snippets.ts'

const FACTS = { value: 'sk-hg1-value', apiURL: 'https://models.x.example', model: 'llama-3.3-70b' }
const textOf = (name: string, facts = FACTS): string => snippets(facts).find((one) => one.name === name)?.text ?? ''

it('.env has the value and the base URL, and no other text has the value', () => {
  expect(textOf('.env')).toBe('SERVICE_API_KEY=sk-hg1-value\nSERVICE_BASE_URL=https://models.x.example/v1')
  expect(
    snippets(FACTS)
      .filter(({ text }) => text.includes(FACTS.value))
      .map(({ name }) => name),
  ).toEqual(['.env'])
})

it.each(['curl', 'Python', 'Node', 'Anthropic'])('%s calls a model of the key', (name) => {
  expect(textOf(name)).toContain('llama-3.3-70b')
})

it('curl goes to the installation', () => {
  expect(textOf('curl')).toContain('curl https://models.x.example/v1/chat/completions')
})

it('a name of a model cannot end the quotes of a shell or of a program', () => {
  const facts = { ...FACTS, model: `a'$(id)"b` }
  expect(textOf('curl', facts)).toContain(String.raw`"model":"a'\''$(id)\"b"`)
  expect(textOf('Python', facts)).toContain(String.raw`model="a'$(id)\"b",`)
})

describe('the model of the texts', () => {
  it('is one that the key may call, and answers text', () => {
    expect(modelFor({ models: ['*'] }, PLAN)).toBe('llama-3.1-8b')
    expect(modelFor({ models: ['llama-3.3-70b', 'bge-m3'] }, PLAN)).toBe('llama-3.3-70b')
    expect(modelFor({ models: ['bge-m3'] }, PLAN)).toBe('bge-m3')
  })

  it('is the name of the key where the plan is not known, and a placeholder where nothing is', () => {
    expect(modelFor({ models: ['x*', 'y'] }, undefined)).toBe('y')
    expect(modelFor({ models: ['*'] }, { ...PLAN, models: [] })).toBe('MODEL')
  })
})
