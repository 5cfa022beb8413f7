/** What the pages before sign-in add once scripts run: they work without this file. */
import './styles/tokens.css'
import './styles/base.css'
import './styles/controls.css'
import './styles/door.css'
import { countdown } from './countdown.ts'

/** `<button hidden data-show-password="ID">` shows and hides the password of the input ID. */
function showsPassword(button: HTMLButtonElement): void {
  const input = document.getElementById(button.dataset['showPassword'] ?? '')
  if (!(input instanceof HTMLInputElement)) return
  button.hidden = false
  button.addEventListener('click', () => {
    const shown = input.type === 'password'
    input.type = shown ? 'text' : 'password'
    button.setAttribute('aria-pressed', String(shown))
    button.textContent = shown ? 'Hide' : 'Show'
  })
  input.form?.addEventListener('submit', () => (input.type = 'password')) // so that the browser offers to save the password
}

/** `<button data-countdown-seconds="42">Send again</button>` cannot be pressed for 42 seconds, and says how long. */
function countsDown(button: HTMLButtonElement): void {
  const label = button.dataset['countdownLabel'] ?? 'Send again'
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
