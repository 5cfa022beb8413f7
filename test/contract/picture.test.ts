import { expect, test } from 'vitest'
import { read } from '../support/documents.ts'
import { terminalSvg } from '../picture/terminal-svg.ts'

const frame = { title: 'A title', description: 'a < b' }

test('the picture of the README holds no key, and shows a key that works and a key that is refused', () => {
  const picture = read('docs/first-key.svg')
  expect(picture).not.toMatch(/sk-hg1[0-9A-Za-z]{20}/)
  expect(picture).toMatch(/HTTP 200[^]*Suspended[^]*HTTP 401/)
  expect(read('README.md')).toContain('](docs/first-key.svg)')
})

test('a picture is the same for the same lines, and has colours for light and for dark pages', () => {
  const lines = [{ kind: 'command', text: '$ make run' }] as const
  expect(terminalSvg(lines, frame)).toBe(terminalSvg(lines, frame))
  expect(terminalSvg(lines, frame)).toContain('@media (prefers-color-scheme: light)')
})

test('no output of a program can break the picture', () => {
  const picture = terminalSvg([{ kind: 'output', text: '<script>&"' }], frame)
  expect(picture).toContain('&lt;script&gt;&amp;"')
  expect(picture).not.toContain('<script>')
})

test('a line that is too long is cut, with a mark of the cut', () => {
  const picture = terminalSvg([{ kind: 'output', text: 'x'.repeat(500) }], frame)
  expect(picture).toMatch(/>x{103}…</)
})
