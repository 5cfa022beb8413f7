/** The page `Sign in as` of a stand-in provider: plain forms, which work without a script. */
import type { StubPerson } from './people.ts'

export interface SignInView {
  /** Name of the provider that the server stands for. */
  readonly provider: string
  readonly people: readonly StubPerson[]
  /** Origin of the client that gets the answer. */
  readonly goesTo: string
  /** The address that the client suggests. */
  readonly email: string
  readonly problem?: string
}

/** The forms have no action, so they post to the address of the page, with its query. */
export function signInPage({ provider, people, goesTo, email, problem }: SignInView): string {
  const name = escaped(provider)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign in as · ${name} (stand-in)</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Sign in as</h1>
<p>This page stands for ${name}. It is for trials and tests, and asks for no password. The answer goes to ${escaped(goesTo)}.</p>
${problem === undefined ? '' : `<p role="alert">${escaped(problem)}</p>`}
<form method="post">
${people.map(personButton).join('\n')}
</form>
<form method="post">
<label>Email <input name="email" type="email" required value="${escaped(email)}"></label>
<label>Account <input name="account" placeholder="empty: the address"></label>
<label><input name="verified" type="checkbox" value="yes" checked> Verified</label>
<button>Sign in</button>
</form>
<form method="post"><button name="cancel" value="yes">Cancel</button></form>
</main>
</body>
</html>
`
}

function personButton({ account, name, email, isVerified }: StubPerson): string {
  const text = `${name} (${email}${isVerified ? '' : ', not verified'})`
  return `<button name="person" value="${escaped(account)}">${escaped(text)}</button>`
}

const STYLE = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
main { max-width: 28rem; margin: 2rem auto; padding: 0 1rem }
form { display: grid; gap: .75rem; margin: 1.5rem 0 }
label:not(:has([type=checkbox])) { display: grid }
button, input:not([type=checkbox]) { font: inherit; min-height: 2.5rem }`

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}
