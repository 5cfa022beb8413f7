import { describe, expect, test } from 'vitest'
import { boundaryIn, readForm } from './form-body.ts'

const B = 'x-1'
const part = (name: string, content: string, more = ''): string =>
  `--${B}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`
const FILE = `--${B}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n\0\r\n--x\xff\r\n`
const END = `--${B}--\r\n`
const read = (text: string): unknown => {
  const bytes = Buffer.from(text, 'latin1')
  const form = readForm(bytes, B)
  if ('problem' in form) return form.problem
  return form.fields.map(({ name, text: value, at }) => [name, value, bytes.toString('latin1', at.start, at.end)])
}

test('a form of text and a file is read, the file as a place alone', () => {
  expect(read(part('model', 'whisper') + FILE + part('prompt', '') + END)).toEqual([
    ['model', 'whisper', 'whisper'],
    ['file', undefined, '\0\r\n--x\xff'],
    ['prompt', '', ''],
  ])
  expect(read(part('model', 'm').replace('Content-Disposition', 'content-disposition') + END.trimEnd())).toEqual([['model', 'm', 'm']])
})

describe('what two parsers may read differently is refused:', () => {
  test.each<[string, string]>([
    ['text before the first boundary', `preamble\r\n${part('model', 'm')}${END}`],
    ['text after the last boundary', `${part('model', 'm')}${END}${part('model', 'other')}`],
    ['no end', part('model', 'm')],
    ['a boundary after a lone line feed', part('prompt', `x\n--${B}\r\nContent-Disposition: form-data; name="model"\r\n\r\nother`) + END],
    ['a boundary in the middle of a line', part('prompt', `x--${B}`) + END],
    ['a boundary with spaces behind it', part('model', 'm').replace(`--${B}`, `--${B}  `) + END],
    ['an end in the middle', part('prompt', `x\r\n--${B}--\r\n`) + END],
    ['two names', part('prompt', 'x', '; name="model"') + END],
    ['a name in a file name', part('prompt', 'x', '; filename="a"; name="model"') + END],
    ['a name without quotes', part('prompt', 'x').replace('"prompt"', 'prompt') + END],
    ['a quoted name with an escape', part('prompt', 'x').replace('"prompt"', '"mod\\el"') + END],
    ['two heads of one field', part('a', 'x').replace('\r\n\r\n', '\r\nContent-Disposition: form-data; name="model"\r\n\r\n') + END],
    ['a folded header', part('a', 'x').replace('; name', ';\r\n name') + END],
    ['a header with a lone line feed', part('a', 'x').replace('\r\n\r\n', '\nContent-Type: text/plain\r\n\r\n') + END],
    ['another encoding', part('a', 'x').replace('\r\n\r\n', '\r\nContent-Transfer-Encoding: base64\r\n\r\n') + END],
    ['a field without a head', `--${B}\r\nx\r\n${END}`],
    ['text that is not UTF-8', part('a', '\xff') + END],
    ['hundreds of fields', Array.from({ length: 65 }, () => part('a', 'x')).join('') + END],
  ])('%s', (_what, text) => {
    expect(read(text)).toEqual(expect.any(String))
  })
})

test('a boundary is taken from the plain spellings of the content type alone', () => {
  expect(
    ['x-1', '"x 1"', '"x:1"', 'x:1', 'x; charset=a', 'x; boundary=y', ''].map((text) =>
      boundaryIn(`multipart/form-data; boundary=${text}`),
    ),
  ).toEqual([...['x-1', undefined, 'x:1', undefined, undefined, undefined, undefined]])
  expect([boundaryIn('multipart/mixed; boundary=x'), boundaryIn('application/json'), boundaryIn(undefined)]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
})
