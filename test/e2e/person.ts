/**
 * A browser without scripts, as far as forms and cookies go. It runs in a pod of the cluster: the test hands this text to Node.
 *   PATH COOKIES FORM   posts the form; a path without a form is read. Prints a Shown as JSON
 */

export interface Shown {
  readonly status: number
  readonly location: string
  readonly cookies: string
  readonly text: string
}

const ORIGIN = 'http://dashboard.front.svc'
const [path = '/', cookies = '', form] = process.argv.slice(1)
const sent = form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }
const answer = await fetch(ORIGIN + path, { ...sent, redirect: 'manual', headers: { origin: ORIGIN, cookie: cookies } })
const set = answer.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
const shown: Shown = {
  status: answer.status,
  location: answer.headers.get('location') ?? '',
  cookies: set.join('; '),
  text: await answer.text(),
}
process.stdout.write(JSON.stringify(shown))
