import { describe, expect, test } from 'vitest'
import { html } from './html.ts'

const text = (made: ReturnType<typeof html>): string => made.toString()

describe('a value', () => {
  test('in text shows as typed and never becomes an element', () => {
    expect(text(html`<p>${'<script>alert(1)</script>'}</p>`)).toBe('<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>')
    expect(text(html`<p>${'&lt; & <'}</p>`)).toBe('<p>&amp;lt; &amp; &lt;</p>')
  })

  test('in an attribute cannot end the attribute', () => {
    expect(text(html`<input value="${'" onfocus="alert(1)'}" />`)).toBe('<input value="&quot; onfocus=&quot;alert(1)" />')
    expect(text(html`<input value="${"' autofocus onfocus='x"}" />`)).toContain('&#39; autofocus')
    expect(text(html`<input value="${'`'}" />`)).toContain('value="&#96;"')
  })

  test('as an attribute without quotes is refused, since a space would end the attribute', () => {
    expect(() => html`<input value=${'a onfocus=alert(1)'} />`).toThrow('a value needs quotes: <input value=')
    expect(text(html`<a href="/verify?token=${'t'}">x</a>`)).toBe('<a href="/verify?token=t">x</a>')
  })

  test('that is undefined or false leaves nothing, 0 and the empty text stay', () => {
    expect(text(html`[${undefined}${false}${0}${''}]`)).toBe('[0]')
  })

  test('that is a list leaves its parts, each escaped', () => {
    expect(text(html`${['<', [html`<b>${'>'}</b>`, undefined]]}`)).toBe('&lt;<b>&gt;</b>')
  })

  test('that html has made stays as it is, and an object that looks alike does not pass', () => {
    expect(text(html`<p>${html`<b>${'a&b'}</b>`}</p>`)).toBe('<p><b>a&amp;b</b></p>')
    const alike = { toString: () => '<script>' } as unknown as string
    expect(() => text(html`${alike}`)).toThrow(TypeError)
  })
})

describe('an address', () => {
  test.each(['/settings', '/', '/verify?a=b', 'https://github.com/login', 'http://127.0.0.1:9000/x', '#email'])('%s is kept', (address) => {
    expect(text(html`<a href="${address}">x</a>`)).toBe(`<a href="${address}">x</a>`)
  })

  test.each([
    'javascript:alert(1)',
    ' javascript:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,x',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    '',
  ])('%j leads nowhere, as a link and as the action of a form', (address) => {
    expect(text(html`<a href="${address}">x</a>`)).toBe('<a href="#">x</a>')
    expect(text(html`<form method="post" action="${address}"></form>`)).toContain('action="#"')
  })
})
