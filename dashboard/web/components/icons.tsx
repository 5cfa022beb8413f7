/** The drawings of the app. All are decoration: the words beside them say the same. */
import type { ReactNode } from 'react'

const DRAWINGS = {
  house: <path d="M2.5 7 8 2.5 13.5 7v6.5h-11zM6.5 13.5v-4h3v4" />,
  sliders: (
    <>
      <path d="M2 4.75h6.5M12.5 4.75H14M2 11.25h1.5M7.5 11.25H14" />
      <circle cx="10.5" cy="4.75" r="1.75" />
      <circle cx="5.5" cy="11.25" r="1.75" />
    </>
  ),
  key: (
    <>
      <circle cx="5.25" cy="10.75" r="2.75" />
      <path d="m7.25 8.75 6-6M10.75 5.25l2 2" />
    </>
  ),
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5" />
    </>
  ),
  bars: <path d="M3 13.5V9M8 13.5v-11M13 13.5V6" />,
  card: (
    <>
      <rect x="1.75" y="3.5" width="12.5" height="9" rx="1.5" />
      <path d="M1.75 6.75h12.5" />
    </>
  ),
  tick: <path d="m3 8.5 3.25 3.25L13 5" />,
  cross: <path d="m3.5 3.5 9 9M12.5 3.5l-9 9" />,
} as const

export function Icon({ name, weight = 1.5 }: { readonly name: keyof typeof DRAWINGS; readonly weight?: number }): ReactNode {
  const line = { fill: 'none', stroke: 'currentColor', strokeWidth: weight, strokeLinecap: 'round', strokeLinejoin: 'round' } as const
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" {...line}>
      {DRAWINGS[name]}
    </svg>
  )
}

export function Mark(): ReactNode {
  return (
    <svg className="mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
      <rect className="post" x="3" y="2" width="4" height="20" rx="1" />
      <rect className="post" x="17" y="2" width="4" height="20" rx="1" />
      <rect className="board" x="7" y="7" width="10" height="5" />
      <path className="water" d="M9 18.25q1.5-1.5 3 0t3 0" />
    </svg>
  )
}
