/** Tabs within a dialog: the arrow keys go from tab to tab. Tabs that change the page are links instead. */
import { type KeyboardEvent, type ReactNode, useId, useState } from 'react'
import styles from './tabs.module.css'

export interface TabsProps {
  readonly label: string
  readonly tabs: readonly { readonly name: string; readonly panel: ReactNode }[]
}

export function Tabs({ label, tabs }: TabsProps): ReactNode {
  const id = useId()
  const [chosen, setChosen] = useState(0)
  const choose = (index: number): void => {
    setChosen(index)
    document.getElementById(`${id}-tab-${index}`)?.focus()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = nextTab(event.key, chosen, tabs.length)
    if (next === undefined) return
    event.preventDefault()
    choose(next)
  }
  return (
    <div className={styles.box}>
      <div className={styles.tabs} role="tablist" aria-label={label} tabIndex={-1} onKeyDown={onKeyDown}>
        {tabs.map(({ name }, index) => (
          <button
            role="tab"
            type="button"
            id={`${id}-tab-${index}`}
            aria-controls={`${id}-panel-${index}`}
            aria-selected={index === chosen}
            tabIndex={index === chosen ? undefined : -1}
            onClick={() => setChosen(index)}
            key={name}
          >
            {name}
          </button>
        ))}
      </div>
      {tabs.map(({ name, panel }, index) => (
        <div role="tabpanel" id={`${id}-panel-${index}`} aria-labelledby={`${id}-tab-${index}`} hidden={index !== chosen} key={name}>
          {panel}
        </div>
      ))}
    </div>
  )
}

/** @returns undefined for a key that does not move */
function nextTab(key: string, chosen: number, count: number): number | undefined {
  switch (key) {
    case 'ArrowRight':
      return (chosen + 1) % count
    case 'ArrowLeft':
      return (chosen + count - 1) % count
    case 'Home':
      return 0
    case 'End':
      return count - 1
    default:
      return undefined
  }
}
