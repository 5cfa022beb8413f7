/** Remedies for reasons of conditions without a cluster, if the message has no remedy, or one that needs a cluster. Pure. */

/** A condition that is not True. */
export interface FailedCondition {
  readonly reason: string
  readonly message: string
  readonly isModel: boolean
}

const START_SERVER = 'Start the model server, or correct the `url` of the backend.'
const START_REDIS = 'Start the Redis of REDIS_URL. Headgate continues by itself; until then the last edit is not in force.'

const OF_KEYS: Readonly<Record<string, string>> = {
  StoreUnreachable: START_REDIS,
  WaitingForStore: START_REDIS,
  BudgetExhausted: 'Raise the amount of the budget to let the key work before that.',
}

const OF_MODELS: Readonly<Record<string, string>> = {
  AddressRefused: 'Write the address of a model server.',
  SecretNotFound: 'Add the Secret to the manifests, with the label headgate.dev/upstream-auth: "true".',
  Unreachable: START_SERVER,
  Degraded: START_SERVER,
  NotProgrammed: '',
}

/** The operator's message about a backend whose Service does not exist. */
const NO_SERVICE = /(backends\[[^\]]*\]\.service): .*? The backend is used as soon as it exists\./g

/** @returns the message with its remedy */
export function remedied({ reason, message, isModel }: FailedCondition): string {
  const text = message.replace(
    NO_SERVICE,
    '$1: there are no Services without a cluster. Write `url: http://<host>:<port>` instead of `service`.',
  )
  const remedy = (isModel ? OF_MODELS : OF_KEYS)[reason] ?? ''
  return remedy === '' ? text : `${text} ${remedy}`
}

const OF_EVENTS: Readonly<Record<string, string>> = {
  BudgetNearlyUsed: 'Raise the amount of the budget, or wait for its next window.',
  BudgetExhausted: 'Raise the amount of the budget, or wait for its next window.',
  RevocationUnconfirmed: 'Start Headgate again to be sure: a key that is revoked is never loaded.',
}

/** @returns the note of an Event with its remedy */
export function remediedNote(reason: string, note: string): string {
  const remedy = OF_EVENTS[reason]
  return remedy === undefined ? note : `${note} ${remedy}`
}
