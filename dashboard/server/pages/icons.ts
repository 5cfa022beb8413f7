/** Drawings of the pages. They carry no style of their own: sizes come from attributes and the stylesheet. */
import { html, type Html } from './html.ts'

/** The mark beside the name: a gate with its board, and water. */
export const MARK: Html = html`<svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
  <rect class="post" x="3" y="2" width="4" height="20" rx="1" />
  <rect class="post" x="17" y="2" width="4" height="20" rx="1" />
  <rect class="board" x="7" y="7" width="10" height="5" />
  <path class="water" d="M9 18.25q1.5-1.5 3 0t3 0" />
</svg>`

/** The water line above the footer. */
export const CANAL: Html = html`<svg class="canal" aria-hidden="true">
  <defs>
    <pattern id="wave" width="320" height="24" patternUnits="userSpaceOnUse">
      <path class="bed" d="M0 12q80-10 160 0t160 0v12H0z" />
      <path class="surface" d="M0 12q80-10 160 0t160 0" />
    </pattern>
  </defs>
  <rect width="100%" height="24" fill="url(#wave)" />
</svg>`

const GITHUB = html`<svg viewBox="0 0 16 16" width="16" height="16" fill="currentColor" aria-hidden="true">
  <path
    d="M8 0c4.42 0 8 3.58 8 8a8.013 8.013 0 0 1-5.45 7.59c-.4.08-.55-.17-.55-.38 0-.27.01-1.13.01-2.2 0-.75-.25-1.23-.54-1.48 1.78-.2 3.65-.88 3.65-3.95 0-.88-.31-1.59-.82-2.15.08-.2.36-1.02-.08-2.12 0 0-.67-.22-2.2.82-.64-.18-1.32-.27-2-.27-.68 0-1.36.09-2 .27-1.53-1.03-2.2-.82-2.2-.82-.44 1.1-.16 1.92-.08 2.12-.51.56-.82 1.28-.82 2.15 0 3.06 1.86 3.75 3.64 3.95-.23.2-.44.55-.51 1.07-.46.21-1.61.55-2.33-.66-.15-.24-.6-.83-1.23-.82-.67.01-.27.38.01.53.34.19.73.9.82 1.13.16.45.68 1.31 2.69.94 0 .67.01 1.3.01 1.49 0 .21-.15.45-.55.38A7.995 7.995 0 0 1 0 8c0-4.42 3.58-8 8-8Z"
  />
</svg>`

const GOOGLE = html`<svg viewBox="0 0 18 18" width="16" height="16" aria-hidden="true">
  <path
    fill="#4285F4"
    d="M17.64 9.2c0-.637-.057-1.251-.164-1.84H9v3.481h4.844c-.209 1.125-.843 2.078-1.796 2.717v2.258h2.908c1.702-1.567 2.684-3.874 2.684-6.615z"
  />
  <path
    fill="#34A853"
    d="M9 18c2.43 0 4.467-.806 5.956-2.18l-2.908-2.259c-.806.54-1.837.86-3.048.86-2.344 0-4.328-1.584-5.036-3.711H.957v2.332C2.438 15.983 5.482 18 9 18z"
  />
  <path
    fill="#FBBC05"
    d="M3.964 10.71c-.18-.54-.282-1.117-.282-1.71s.102-1.17.282-1.71V4.958H.957C.347 6.173 0 7.548 0 9s.348 2.827.957 4.042l3.007-2.332z"
  />
  <path
    fill="#EA4335"
    d="M9 3.58c1.321 0 2.508.454 3.44 1.345l2.582-2.58C13.463.891 11.426 0 9 0 5.482 0 2.438 2.017.957 4.958L3.964 7.29C4.672 5.163 6.656 3.58 9 3.58z"
  />
</svg>`

/** Any other issuer: a key. */
const ISSUER = html`<svg
  viewBox="0 0 16 16"
  width="16"
  height="16"
  fill="none"
  stroke="currentColor"
  stroke-width="1.5"
  stroke-linecap="round"
  stroke-linejoin="round"
  aria-hidden="true"
>
  <circle cx="5.25" cy="10.75" r="2.75" />
  <path d="m7.25 8.75 6-6M10.75 5.25l2 2" />
</svg>`

const PROVIDER_ICONS: ReadonlyMap<string, Html> = new Map([
  ['github', GITHUB],
  ['google', GOOGLE],
])

export function providerIcon(id: string): Html {
  return PROVIDER_ICONS.get(id) ?? ISSUER
}
