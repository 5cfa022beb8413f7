/** Every Event that the operator may write. The reference page prints the table. */

/** One Event that the operator may write. `action` is what the operator did or tried, in UpperCamelCase as events.k8s.io/v1 requires. */
export interface EventEntry {
  readonly type: 'Normal' | 'Warning'
  readonly action: string
  readonly meaning: string
}

/** Events, by reason. Written only when a state changes. */
export const EVENTS = {
  Issued: { type: 'Normal', action: 'Issue', meaning: 'The operator made the key and wrote its Secret.' },
  Imported: { type: 'Normal', action: 'Issue', meaning: 'Gateways accept the value whose SHA-256 is in the manifest.' },
  Rotated: {
    type: 'Normal',
    action: 'Rotate',
    meaning: 'Gateways accept the value of the new SHA-256; the former value works until its overlap is over.',
  },
  ValueEndedEarly: {
    type: 'Warning',
    action: 'Rotate',
    meaning: 'A former value stopped before its overlap was over, because at most four values of a key work at the same time.',
  },
  DuplicateKey: { type: 'Warning', action: 'Accept', meaning: 'Another key has the value whose SHA-256 is in the manifest.' },
  SourceInvalid: { type: 'Warning', action: 'Accept', meaning: 'source.hash.hint holds the whole value of the key.' },
  Suspended: { type: 'Normal', action: 'Suspend', meaning: 'Gateways refuse the key until it is Active again.' },
  Resumed: { type: 'Normal', action: 'Resume', meaning: 'The key works again.' },
  Expired: { type: 'Normal', action: 'Expire', meaning: 'The key has expired.' },
  BudgetNearlyUsed: { type: 'Warning', action: 'Count', meaning: '80 % of a budget are used. At most one Event per window.' },
  BudgetExhausted: { type: 'Warning', action: 'Count', meaning: 'A budget is used up. At most one Event per window.' },
  SpendUncertain: {
    type: 'Warning',
    action: 'Restore',
    meaning: 'Redis had lost spend of a key; the operator restored the known spend. The note names the period.',
  },
  Revoked: { type: 'Normal', action: 'Revoke', meaning: 'The key is refused for ever, and every gateway pod has acknowledged that.' },
  Released: {
    type: 'Normal',
    action: 'Release',
    meaning:
      'The operator removed its finalizer, because the namespace is no longer watched or Headgate is being uninstalled. The key is revoked.',
  },
  RevocationUnconfirmed: {
    type: 'Warning',
    action: 'Revoke',
    meaning: 'Some gateway pods have not acknowledged the revocation in time; the note names them.',
  },
  Unconfirmed: {
    type: 'Warning',
    action: 'Issue',
    meaning: 'The operator wrote the Secret before some gateway pods had acknowledged the key; the note names them.',
  },
  SecretConflict: {
    type: 'Warning',
    action: 'Issue',
    meaning: 'A Secret that does not belong to the ApiKey has the name; nothing was issued.',
  },
  SecretMissing: { type: 'Warning', action: 'Observe', meaning: 'The Secret was deleted; the key still works.' },
  SecretModified: { type: 'Warning', action: 'Observe', meaning: 'The value in the Secret was changed; the issued key still works.' },
  SecretUnreadable: {
    type: 'Warning',
    action: 'Observe',
    meaning: 'The operator cannot read a Secret of the object; the note names the cause.',
  },
  QuotaExceeded: { type: 'Warning', action: 'Issue', meaning: 'A ResourceQuota refuses the Secret; no key works until there is room.' },
  AdmissionDenied: { type: 'Warning', action: 'Issue', meaning: 'An admission policy refuses the Secret; the note quotes the policy.' },
  Forbidden: { type: 'Warning', action: 'Issue', meaning: 'The operator has no right to create the Secret.' },
  KeyringFull: { type: 'Warning', action: 'Issue', meaning: 'The keyring has no room for the key, or for its newest edit.' },
  KeyLost: {
    type: 'Warning',
    action: 'Recover',
    meaning: 'No copy of the hash of the key is left; the operator does not issue another key.',
  },
  KeyringRestored: {
    type: 'Warning',
    action: 'Recover',
    meaning: 'The keyring had lost the key. The operator restored it from the Secret or from Redis.',
  },
  EntryUnreadable: {
    type: 'Warning',
    action: 'Observe',
    meaning: 'A newer version of the operator wrote the entry of the key; this version leaves it as it is.',
  },
  NamespaceLimitReached: {
    type: 'Warning',
    action: 'Accept',
    meaning: 'The namespace has as many objects of the kind as the settings allow.',
  },
  InvalidTimeZone: { type: 'Warning', action: 'Accept', meaning: 'The timeZone of a budget does not exist.' },
  NameConflict: { type: 'Warning', action: 'Accept', meaning: 'An older ServedModel has the name.' },
  AddressRefused: { type: 'Warning', action: 'Accept', meaning: 'The url of a backend is an address that gateways must not call.' },
  ServiceNotFound: { type: 'Warning', action: 'Accept', meaning: 'The Service of a backend, or its port, does not exist.' },
  SecretNotFound: { type: 'Warning', action: 'Accept', meaning: 'The Secret of a backend does not exist, or lacks its data key or label.' },
  NameTakenOver: {
    type: 'Warning',
    action: 'Accept',
    meaning: 'A published name is now served by another namespace. The Event is written on both ServedModels.',
  },
  PublishingNotAllowed: { type: 'Warning', action: 'Accept', meaning: 'The namespace may not open models to other namespaces.' },
  CredentialHostNotAllowed: {
    type: 'Warning',
    action: 'Accept',
    meaning: 'A Secret does not allow its credential for the host of a backend.',
  },
  CredentialsFull: { type: 'Warning', action: 'Accept', meaning: 'The Secrets that the gateways mount have no room for the model.' },
} as const satisfies Readonly<Record<string, EventEntry>>

/** Reason of an Event. */
export type EventReason = keyof typeof EVENTS

/** @returns whether a reason of a condition is the reason of an Event too */
export function isEventReason(reason: string): reason is EventReason {
  return reason in EVENTS
}
