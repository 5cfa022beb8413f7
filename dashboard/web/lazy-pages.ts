/** The further pages by name: fetched when one is opened, and soon after the first page, so that a person who goes offline still reaches them. */
import { type ComponentType, lazy } from 'react'

const load = (): Promise<typeof import('./further-pages.ts')> => import('./further-pages.ts')

export const KeysPage = lazy(async () => asDefault((await load()).KeysPage))
export const KeyPage = lazy(async () => asDefault((await load()).KeyPage))
export const UsagePage = lazy(async () => asDefault((await load()).UsagePage))
export const BillingPage = lazy(async () => asDefault((await load()).BillingPage))
export const PlanPage = lazy(async () => asDefault((await load()).PlanPage))
export const Settings = lazy(async () => asDefault((await load()).Settings))

/** Fetches the pages. If that fails, they are fetched again when one is opened. */
export async function loadPages(): Promise<void> {
  await load().catch(() => undefined)
}

function asDefault<P>(component: ComponentType<P>): { default: ComponentType<P> } {
  return { default: component }
}
