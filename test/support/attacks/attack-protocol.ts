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
  'large images',
] as const
export type Attack = (typeof ATTACKS)[number]

export const SILENT_NAMES = ['silent-0', 'silent-1', 'silent-2', 'silent-3'] as const

/** Models whose servers speak chat completions alone, so that messages for them are translated. */
export const TRANSLATED_MODELS = ['images', 'paced'] as const

export interface AttackSite {
  readonly host: string
  readonly port: number
  readonly credential: string
}

/** Ports of the model servers, by the model that they are behind. */
export type AttackPorts = Readonly<Record<'bomb' | 'deep' | 'flood' | 'endless' | 'slow' | 'images' | 'paced', number>>

export interface AttackOrder {
  readonly start: Attack | 'all together' | 'nothing'
}
