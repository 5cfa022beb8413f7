/**
 * Every condition, reason and event that users can meet, in one place. The reference page prints these tables; `condition-list.ts`
 * takes the status of a condition from its reason, so that the two never contradict each other.
 */

/** One cause of a condition: what the condition's status is then, and the sentence of the reference page. */
export interface ReasonEntry {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly meaning: string
}

/** One condition type. `WhenTrue`: the condition is absent unless its status is True. */
export interface ConditionEntry {
  readonly presence: 'Always' | 'WhenTrue'
  readonly meaning: string
  readonly reasons: Readonly<Record<string, ReasonEntry>>
}

/** The conditions of one kind; key = condition type, in the order in which they stand in the status. */
export type ConditionTable = Readonly<Record<string, ConditionEntry>>

/** One judgement that `decide` makes: a type of the table with one of its own reasons. The status follows from the reason. */
export type JudgementOf<T extends ConditionTable> = {
  [Type in keyof T & string]: { readonly type: Type; readonly reason: keyof T[Type]['reasons'] & string; readonly message: string }
}[keyof T & string]

/** Conditions of an ApiKey. The reasons of Ready stand in the order in which they win. */
export const API_KEY_CONDITIONS = {
  Ready: {
    presence: 'Always',
    meaning: 'The key works on every gateway now. It waits for the first programming only; later edits show in Programmed.',
    reasons: {
      Revoked: { status: 'False', meaning: 'spec.state is Revoked, for ever. Make a new ApiKey for a new key.' },
      Suspended: { status: 'False', meaning: 'spec.state is Suspended. Set it to Active to let the key work again.' },
      Expired: { status: 'False', meaning: 'expirationTime or ttlSeconds has passed. Set a later time to let the key work again.' },
      NotAccepted: { status: 'False', meaning: 'See the condition Accepted.' },
      KeyLost: { status: 'False', meaning: 'No copy of the hash of the key is left. Delete the ApiKey and its Secret and apply it again.' },
      SecretNotIssued: { status: 'False', meaning: 'See the condition SecretIssued.' },
      NotProgrammed: { status: 'False', meaning: 'No gateway has the key yet: see the condition Programmed.' },
      Ready: { status: 'True', meaning: 'The key works.' },
    },
  },
  Accepted: {
    presence: 'Always',
    meaning: 'The manifest can be acted on.',
    reasons: {
      Accepted: { status: 'True', meaning: 'It is acted on.' },
    },
  },
  SecretIssued: {
    presence: 'Always',
    meaning: 'The Secret with the key exists.',
    reasons: {
      Issued: { status: 'True', meaning: 'The Secret holds the key.' },
      WaitingForStore: { status: 'False', meaning: 'Redis does not answer, so nothing is issued; it goes on by itself.' },
      SecretConflict: {
        status: 'False',
        meaning:
          'A Secret of that name exists and is not ours; it is left as it is. Remove it, or apply the ApiKey anew with another secret.name.',
      },
      SecretMissing: {
        status: 'False',
        meaning: 'Somebody deleted the Secret. The key still works and its value is not known here. Make a new ApiKey for a new value.',
      },
      SecretModified: {
        status: 'False',
        meaning: 'Somebody changed the value in the Secret; it is left as it is. The issued key works, the value in the Secret does not.',
      },
    },
  },
  Programmed: {
    presence: 'Always',
    meaning: 'Every gateway pod has acknowledged the newest revision of the key.',
    reasons: {
      Programmed: { status: 'True', meaning: 'All have.' },
      Pending: { status: 'False', meaning: 'Some have not yet.' },
      NoGateways: { status: 'False', meaning: 'No gateway pod serves.' },
      StoreUnreachable: { status: 'Unknown', meaning: 'Redis does not answer.' },
      Unconfirmed: { status: 'False', meaning: 'Some have not in time; the message names the pods.' },
    },
  },
  Suspended: {
    presence: 'WhenTrue',
    meaning: 'The key is refused while spec.state is Suspended.',
    reasons: { Suspended: { status: 'True', meaning: 'spec.state is Suspended.' } },
  },
  Expired: {
    presence: 'WhenTrue',
    meaning: 'The key is refused because its time is over.',
    reasons: { Expired: { status: 'True', meaning: 'status.expirationTime has passed.' } },
  },
  Stalled: {
    presence: 'WhenTrue',
    meaning: 'A person must act; the operator alone cannot go on.',
    reasons: {
      KeyLost: { status: 'True', meaning: 'As for Ready.' },
      SecretConflict: { status: 'True', meaning: 'As for SecretIssued.' },
    },
  },
} as const satisfies ConditionTable

/** Conditions of a ServedModel. The reasons of Ready stand in the order in which they win. */
export const SERVED_MODEL_CONDITIONS = {
  Ready: {
    presence: 'Always',
    meaning: 'The model is accepted, has an endpoint, and every gateway knows it.',
    reasons: {
      NotAccepted: { status: 'False', meaning: 'See the condition Accepted.' },
      NoEndpoints: { status: 'False', meaning: 'See the condition BackendsHealthy.' },
      NotProgrammed: { status: 'False', meaning: 'Not every gateway pod has acknowledged the newest revision of the model yet.' },
      Ready: { status: 'True', meaning: 'The model can be called.' },
    },
  },
  Accepted: {
    presence: 'Always',
    meaning: 'The manifest can be acted on.',
    reasons: {
      Accepted: { status: 'True', meaning: 'It is acted on.' },
      NameConflict: {
        status: 'False',
        meaning: 'An older ServedModel has the served name or an alias; the message names it. Only that name is refused. Choose another.',
      },
      ServiceNotFound: { status: 'False', meaning: 'The Service of a backend, or its port, does not exist in this namespace.' },
      SecretNotFound: {
        status: 'False',
        meaning:
          'The Secret of an authSecretRef, or its data key, does not exist in this namespace or lacks the label headgate.dev/upstream-auth: "true".',
      },
      AddressRefused: { status: 'False', meaning: 'The url of a backend is a loopback, link-local or metadata address.' },
    },
  },
  BackendsHealthy: {
    presence: 'Always',
    meaning: 'The gateways can reach all backends.',
    reasons: {
      Healthy: { status: 'True', meaning: 'All of them.' },
      NoEndpoints: { status: 'False', meaning: 'No backend has a ready endpoint.' },
      Degraded: { status: 'False', meaning: 'Some backends cannot be used; the others serve.' },
      Unreachable: { status: 'False', meaning: 'No gateway can reach any backend.' },
    },
  },
} as const satisfies ConditionTable

/** A judgement about an ApiKey. */
export type ApiKeyJudgement = JudgementOf<typeof API_KEY_CONDITIONS>
/** A judgement about a ServedModel. */
export type ServedModelJudgement = JudgementOf<typeof SERVED_MODEL_CONDITIONS>

/** One Event that the operator may write. `action` is what it did or tried (events.k8s.io/v1 wants it in UpperCamelCase). */
export interface EventEntry {
  readonly type: 'Normal' | 'Warning'
  readonly action: string
  readonly meaning: string
}

/** Events, by reason. Written on a change of state only. */
export const EVENTS = {
  Issued: { type: 'Normal', action: 'Issue', meaning: 'The key was made and its Secret written.' },
  Suspended: { type: 'Normal', action: 'Suspend', meaning: 'The key is refused until it is Active again.' },
  Resumed: { type: 'Normal', action: 'Resume', meaning: 'The key works again.' },
  Expired: { type: 'Normal', action: 'Expire', meaning: 'The time of the key is over.' },
  Revoked: { type: 'Normal', action: 'Revoke', meaning: 'The key is refused for ever, and every gateway pod has acknowledged it.' },
  RevocationUnconfirmed: {
    type: 'Warning',
    action: 'Revoke',
    meaning: 'Some gateway pods have not acknowledged the revocation in time; the note names them.',
  },
  Unconfirmed: {
    type: 'Warning',
    action: 'Issue',
    meaning: 'The Secret was written before some gateway pods had acknowledged the key; the note names them.',
  },
  SecretConflict: { type: 'Warning', action: 'Issue', meaning: 'A foreign Secret has the name; nothing was issued.' },
  SecretMissing: { type: 'Warning', action: 'Observe', meaning: 'The Secret was deleted; the key works on.' },
  SecretModified: { type: 'Warning', action: 'Observe', meaning: 'The value in the Secret was changed; the issued key works on.' },
  KeyLost: { type: 'Warning', action: 'Recover', meaning: 'No copy of the hash of the key is left; nothing is issued silently.' },
  KeyringRestored: {
    type: 'Warning',
    action: 'Recover',
    meaning: 'The keyring had lost the key; it was restored from the Secret or from Redis.',
  },
  NameConflict: { type: 'Warning', action: 'Accept', meaning: 'An older ServedModel has the name.' },
} as const satisfies Readonly<Record<string, EventEntry>>

/** Reason of an Event. */
export type EventReason = keyof typeof EVENTS
