/** Moves the focus to the heading of the page if the control that had the focus has disappeared with the change. */
export function keepFocus(): void {
  // after a dialog has tried to give the focus back
  requestAnimationFrame(() => {
    if (document.activeElement === null || document.activeElement === document.body) document.querySelector('h1')?.focus()
  })
}
