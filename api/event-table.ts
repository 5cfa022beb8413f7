/** Every Event that the operator may write. The reference page prints the table. */

/** One Event that the operator may write. `action` is what the operator did or tried, in UpperCamelCase as events.k8s.io/v1 requires. */
export interface EventEntry {
  readonly type: 'Normal' | 'Warning'
  readonly action: string
  readonly meaning: string
}

const normal = (action: string, meaning: string): EventEntry => ({ type: 'Normal', action, meaning })
const warning = (action: string, meaning: string): EventEntry => ({ type: 'Warning', action, meaning })

/** Events, by reason. Written only when a state changes. */
export const EVENTS = {
  Issued: normal('Issue', 'The operator made the key and wrote its Secret.'),
  Imported: normal('Issue', 'Gateways accept the value whose SHA-256 is in the manifest.'),
  Rotated: normal('Rotate', 'Gateways accept the value of the new SHA-256; the former value works until its overlap is over.'),
  ValueEndedEarly: warning(
    'Rotate',
    'A former value stopped before its overlap was over, because at most four values of a key work at the same time.',
  ),
  DuplicateKey: warning('Accept', 'Another key has the value whose SHA-256 is in the manifest.'),
  SourceInvalid: warning('Accept', 'source.hash.hint holds the whole value of the key.'),
  ProofRequired: warning('Accept', 'source.hash.proof is absent, and the namespace needs one.'),
  ValueUsed: warning('Accept', 'A key with the value was revoked, or another namespace has used the value.'),
  NamedElsewhere: warning('Observe', 'An ApiKey in another namespace names the SHA-256 of the key.'),
  Suspended: normal('Suspend', 'Gateways refuse the key until it is Active again.'),
  Resumed: normal('Resume', 'The key works again.'),
  Expired: normal('Expire', 'The key has expired.'),
  BudgetNearlyUsed: warning('Count', '80 % of a budget has been used. At most one Event per window.'),
  BudgetExhausted: warning('Count', 'A budget has been used up. At most one Event per window.'),
  BalanceLow: warning('Count', 'The balance of an account fell below the amount of the setting. At most one Event per crossing.'),
  BalanceExhausted: warning('Count', 'The balance of an account has been used up; its keys answer 402. At most one Event per crossing.'),
  BalanceRestored: normal('Count', 'A Credit raised the balance of an account, and its keys work again.'),
  SpendRestored: warning(
    'Restore',
    'Redis had counted less for an account than its books; the operator restored the spend from the books.',
  ),
  SpendHeldBack: warning(
    'Count',
    'Redis counts more spend for a key or an account than calls can have caused. The operator does not make it durable; the note says what to do.',
  ),
  SpendUncertain: warning('Restore', 'Redis had lost spend of a key; the operator restored the known spend. The note names the period.'),
  Revoked: normal('Revoke', 'The key is refused for ever, and every gateway pod has acknowledged that.'),
  Released: normal(
    'Release',
    'The operator removed its finalizer, because the namespace is no longer watched or Headgate is being uninstalled. The key is revoked.',
  ),
  RevocationUnconfirmed: warning('Revoke', 'Some gateway pods have not acknowledged the revocation in time; the note names them.'),
  Unconfirmed: warning('Issue', 'The operator wrote the Secret before some gateway pods had acknowledged the key; the note names them.'),
  SecretConflict: warning('Issue', 'A Secret that does not belong to the ApiKey has the name; nothing was issued.'),
  SecretMissing: warning('Observe', 'The Secret was deleted; the key still works.'),
  SecretModified: warning('Observe', 'The value in the Secret was changed; the issued key still works.'),
  SecretUnreadable: warning('Observe', 'The operator cannot read a Secret of the object; the note names the cause.'),
  QuotaExceeded: warning('Issue', 'A ResourceQuota refuses the Secret; no key works until there is room.'),
  AdmissionDenied: warning('Issue', 'An admission policy refuses the Secret; the note quotes the policy.'),
  Forbidden: warning('Issue', 'The operator has no right to create the Secret.'),
  KeyringFull: warning('Issue', 'The keyring has no room for the key, or for its newest edit.'),
  KeyLost: warning('Recover', 'No copy of the hash of the key is left; the operator does not issue another key.'),
  KeyringRestored: warning('Recover', 'The keyring had lost the key. The operator restored it from the Secret or from Redis.'),
  EntryUnreadable: warning('Observe', 'A newer version of the operator wrote the entry of the key; this version leaves it as it is.'),
  NamespaceLimitReached: warning('Accept', 'The namespace has as many objects of the kind as the settings allow.'),
  InvalidTimeZone: warning('Accept', 'The timeZone of a budget does not exist.'),
  AccountNotFound: warning(
    'Accept',
    'There is no Account of that name that admits the namespace of the key, or none that has books for the Credit.',
  ),
  AccountRequired: warning('Accept', 'Keys of this namespace need an account.'),
  AccountSuspended: warning('Suspend', 'The account of the key was suspended; the key answers 401.'),
  NamespaceNotAllowed: warning('Accept', 'The account of the key no longer admits its namespace; the key answers 401.'),
  AccountNotAccepted: warning('Accept', 'The account of the key is not accepted.'),
  PlanNotFound: warning('Accept', 'The plan of an account does not exist.'),
  EmailNotVerified: warning('Accept', 'The address of the owner of an account is not verified; the new key is not issued.'),
  TooManyKeys: warning('Accept', 'The account has as many keys as its plan allows; the new key is not issued.'),
  KeyLimitReached: warning('Accept', 'An account has as many keys as its plan allows.'),
  GatewayTooOld: warning('Accept', 'A gateway pod knows no accounts, or no proofs; the new key is not issued.'),
  NameUsed: warning('Accept', 'An Account that was deleted had the name. The note names the annotation that continues its books.'),
  BooksMissing: warning('Accept', 'The account was accepted before, and its books are gone. Gateways answer 503 for its keys.'),
  BooksDamaged: warning('Accept', 'A Secret with books of the account is damaged or lost. Gateways answer 503 for its keys.'),
  IdUsed: warning('Book', 'The name of the Credit is in the books with another account or amount; the Credit does not count.'),
  BooksFull: warning('Book', 'The Secrets of the books have no room for the Credit; it does not count.'),
  NameConflict: warning('Accept', 'An older ServedModel has the name.'),
  AddressRefused: warning('Accept', 'The url of a backend is an address that gateways must not call.'),
  ServiceNotFound: warning('Accept', 'The Service of a backend, or its port, does not exist.'),
  SecretNotFound: warning('Accept', 'The Secret of a backend does not exist, or lacks its data key or label.'),
  NameTakenOver: warning('Accept', 'A published name is now served by another namespace. The Event is written on both ServedModels.'),
  PublishingNotAllowed: warning('Accept', 'The namespace may not open models to other namespaces.'),
  CredentialHostNotAllowed: warning('Accept', 'A Secret does not allow its credential for the host of a backend.'),
  HeaderRefused: warning('Accept', 'A header in forwardHeaders or of a backend is never sent.'),
  CredentialsFull: warning('Accept', 'The Secrets that the gateways mount have no room for the model.'),
} as const satisfies Readonly<Record<string, EventEntry>>

/** Reason of an Event. */
export type EventReason = keyof typeof EVENTS

/** @returns whether a reason of a condition is the reason of an Event too */
export function isEventReason(reason: string): reason is EventReason {
  return reason in EVENTS
}
