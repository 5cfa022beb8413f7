/** What the pages before sign-in add once scripts run: they work without this file. */
import './styles/tokens.css'
import './styles/base.css'
import './styles/controls.css'
import './styles/door.css'
import { countdown } from './countdown.ts'

/** `<button hidden data-show-password="ID">Show<span> password</span></button>` shows and hides the password of the input ID. */
function showsPassword(button: HTMLButtonElement): void {
  const input = document.getElementById(button.dataset['showPassword'] ?? '')
  if (!(input instanceof HTMLInputElement)) return
  button.hidden = false
  button.removeAttribute('aria-pressed') // the word says it
  const set = (isShown: boolean): void => {
    input.type = isShown ? 'text' : 'password'
    if (button.firstChild) button.firstChild.nodeValue = isShown ? 'Hide' : 'Show'
  }
  button.addEventListener('click', () => set(input.type === 'password'))
  input.form?.addEventListener('submit', () => set(false)) // so that the browser offers to save the password
}

/** `<button disabled data-countdown-seconds="42">Send again in 0:42</button>` counts 42 seconds down, and is then `Send again`. */
function countsDown(button: HTMLButtonElement): void {
  const label = button.textContent.replace(/ in [\d:]+\s*$/, '').trim()
  const end = Date.now() + 1000 * Number(button.dataset['countdownSeconds'])
  const tick = (): void => {
    const text = countdown(end - Date.now())
    button.disabled = text !== undefined
    button.textContent = text === undefined ? label : `${label} in ${text}`
    if (text !== undefined) setTimeout(tick, 250)
  }
  tick()
}

/** `<button hidden data-copy="ID">Copy</button>` copies the value of the input ID. Without a clipboard, the value is selected instead. */
function copies(button: HTMLButtonElement): void {
  const input = document.getElementById(button.dataset['copy'] ?? '')
  if (!(input instanceof HTMLInputElement)) return
  button.hidden = false
  button.addEventListener('click', () => {
    input.select()
    const copied = isSecureContext ? navigator.clipboard.writeText(input.value) : Promise.reject(new Error('no clipboard'))
    copied.then(
      () => (button.textContent = 'Copied'),
      () => (button.textContent = 'Selected'),
    )
  })
}

const all = (selector: string): NodeListOf<HTMLButtonElement> => document.querySelectorAll(`button${selector}`)
all('[data-show-password]').forEach(showsPassword)
all('[data-countdown-seconds]').forEach(countsDown)
all('[data-copy]').forEach(copies)
