/** Moves the focus to the heading of the new page, where a screen reader goes on. The first page keeps the focus of the browser. */
import { useEffect, useRef } from 'react'
import { useLocation } from 'wouter'

export function useFocusAfterNavigation(): void {
  const [here] = useLocation()
  const last = useRef(here)
  useEffect(() => {
    if (last.current === here) return
    last.current = here
    scrollTo(0, 0)
    document.querySelector('h1')?.focus()
  }, [here])
}
