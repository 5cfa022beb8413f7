/** Where the focus goes when the control that had it disappears: to the heading of the page, where a screen reader goes on. */
import { useEffect } from 'react'

export function keepFocus(): void {
  // after a dialog has tried to give the focus back
  requestAnimationFrame(() => {
    if (document.activeElement === null || document.activeElement === document.body) document.querySelector('h1')?.focus()
  })
}

/** For components whose control may have the focus when they go. */
export function useKeptFocus(): void {
  useEffect(() => keepFocus, [])
}
