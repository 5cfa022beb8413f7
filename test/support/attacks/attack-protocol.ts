/** Messages between `attacked-gateway.ts` and the process of the attackers. */

export const ATTACKS = [
  'unread pipelines',
  'stalled uploads',
  'bodies of {},{}',
  'distinct keys',
  'gzip bombs',
  'deep answers',
  'empty events',
  'a loop of gateways',
  'unread streams',
  '/v1/models',
  'silent names',
  'large files',
] as const
export type Attack = (typeof ATTACKS)[number]

export const SILENT_NAMES = ['silent-0', 'silent-1', 'silent-2', 'silent-3'] as const

export interface AttackSite {
  readonly host: string
  readonly port: number
  readonly credential: string
}

/** Ports of the model servers, by the model that they are behind. */
export type AttackPorts = Readonly<Record<'bomb' | 'deep' | 'flood' | 'endless' | 'slow', number>>

export interface AttackOrder {
  readonly start: Attack | 'all together' | 'nothing'
}
