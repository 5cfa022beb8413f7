/**
 * Every condition and reason that users can see. The reference page prints these tables. `condition-list.ts` derives the status of
 * a condition from its reason, so that status and reason cannot contradict each other.
 */

/** One reason of a condition: the status of the condition, and the sentence in the reference page. */
export interface ReasonEntry {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly meaning: string
}

/** One condition type. `WhenTrue`: the condition is absent unless its status is True. */
export interface ConditionEntry {
  readonly presence: 'Always' | 'WhenTrue'
  readonly meaning: string
  /** By priority, highest first. */
  readonly reasons: Readonly<Record<string, ReasonEntry>>
}

/** The conditions of one kind by condition type, in the order of the status. */
export type ConditionTable = Readonly<Record<string, ConditionEntry>>

/** A condition before its status and times are filled in: a type of the table with one of the reasons of this type. */
export type ConditionOf<T extends ConditionTable> = {
  [Type in keyof T & string]: { readonly type: Type; readonly reason: keyof T[Type]['reasons'] & string; readonly message: string }
}[keyof T & string]

/** A reason with which the condition is True. */
export const yes = (meaning: string): ReasonEntry => ({ status: 'True', meaning })
/** A reason with which it is False. */
export const no = (meaning: string): ReasonEntry => ({ status: 'False', meaning })
/** A reason with which it is Unknown. */
export const unknown = (meaning: string): ReasonEntry => ({ status: 'Unknown', meaning })

const ENTRY_UNREADABLE =
  'A newer version of the operator wrote the entry of the key. This version leaves the entry as it is; gateways use the last entry that they could read. Update the operator.'

const LIMIT_REACHED = (plural: string) =>
  `The namespace already has as many ${plural} as the operator's settings allow. Delete others, or ask the administrator for a higher limit; the operator retries by itself.`

/** Conditions of an ApiKey. */
export const API_KEY_CONDITIONS = {
  Ready: {
    presence: 'Always',
    meaning: 'The key works on every gateway now. Only the first programming of a key counts here; later edits show in Programmed.',
    reasons: {
      EntryUnreadable: unknown(ENTRY_UNREADABLE),
      Revoked: no('spec.state is Revoked, which is final. Create a new ApiKey for a new key.'),
      Suspended: no('spec.state is Suspended. Set it to Active to let the key work again.'),
      Expired: no('expirationTime or ttlSeconds has passed. Set a later time to let the key work again.'),
      AccountSuspended: no('The account of the key is suspended. The key works again when the account is Active.'),
      NotAccepted: no('See the condition Accepted.'),
      KeyLost: no(
        'No copy of the hash of the key is left, so gateways cannot recognize it. Delete the ApiKey and its Secret, and apply the ApiKey again.',
      ),
      SecretNotIssued: no('See the condition SecretIssued.'),
      NotProgrammed: no('Not every gateway pod has the key yet. See the condition Programmed.'),
      BalanceExhausted: no('The balance of the account is used up. Requests answer 402 until its administrator adds a Credit.'),
      BudgetExhausted: no('A budget that blocks is used up. See the condition BudgetExhausted.'),
      PriceMissing: no(
        'A budget in Currency that blocks or a Prepaid account pays for the calls, and no model that the key may call has a price, so every request answers 402. Set pricing of a ServedModel ("0" is a price).',
      ),
      Ready: yes('The key works.'),
    },
  },
  Accepted: {
    presence: 'Always',
    meaning: 'The operator applies the manifest.',
    reasons: {
      NamespaceLimitReached: no(LIMIT_REACHED('ApiKeys')),
      AccountRequired: no(
        'Keys of this namespace need an account, and spec.accountRef is absent. Nothing is issued. Create another ApiKey with accountRef.',
      ),
      AccountNotFound: no(
        'There is no Account of that name that admits the namespace. Nothing is issued; an issued key answers 401. Create the Account, or let its administrator admit the namespace; the operator continues by itself.',
      ),
      NamespaceNotAllowed: no(
        'The account no longer admits the namespace of the key, so the key answers 401. Ask the administrator of the account; the key works again when spec.namespaces admits the namespace.',
      ),
      AccountNotAccepted: no('The account is not accepted; the message says why. Its administrator finds the remedy in its conditions.'),
      PlanNotFound: no('The plan of the account does not exist. Create the Plan, or name another in the Account.'),
      EmailNotVerified: no(
        'The address of the owner of the account is not verified. New keys are not issued, and keys issued before go on.',
      ),
      TooManyKeys: no(
        'The account has as many keys as its plan allows, without revoked and expired ones. Revoke or delete keys that are not used; the oldest ApiKey that waits is issued next.',
      ),
      GatewayTooOld: no(
        'A gateway pod runs a version that knows no accounts or no proofs, so nothing is issued. Update all gateway pods; the operator continues by itself.',
      ),
      InvalidTimeZone: no(
        'The timeZone of a budget does not exist; the message names it. A new key is not issued; one that works keeps the budgets that it had, and the rest of the edit acts. Write an IANA name.',
      ),
      DuplicateKey: no(
        'Another key has the value whose SHA-256 is in source.hash. Of two new ApiKeys the older one gets the value. The former value of this key works on. Correct the SHA-256, or delete the other ApiKey; the operator retries by itself.',
      ),
      ProofRequired: no(
        'source.hash.proof is absent, and the namespace is not in scope.unprovenHashes. Set the proof; the former value of this key works on.',
      ),
      ValueUsed: no(
        'A key with the value was revoked, or another namespace has used the value. Make another value, or set source.hash.proof for a value of your own.',
      ),
      SourceInvalid: no(
        'source.hash.hint holds the whole value of the key, so everybody who may read the ApiKey knows the value. Make another value and set its SHA-256 and a shorter hint.',
      ),
      Accepted: yes('The operator carries it out.'),
    },
  },
  SecretIssued: {
    presence: 'Always',
    meaning: 'The Secret with the key exists.',
    reasons: {
      EntryUnreadable: unknown(ENTRY_UNREADABLE),
      KeyLost: no('No copy of the hash of the key is left. See the condition Ready.'),
      Revoked: no('The key was revoked before it was issued, so there is no Secret. Create a new ApiKey for a new key.'),
      SecretConflict: no(
        'A Secret of that name exists and does not belong to this ApiKey. The operator leaves it as it is, and the message names its owner if that is an ApiKey. Create an ApiKey with another secret.name, or delete the Secret if nobody needs it.',
      ),
      SecretModified: no(
        'The value in the Secret was changed. The operator leaves it as it is. The issued key works, the value in the Secret does not. Create a new ApiKey for a new value.',
      ),
      SecretMissing: no(
        'The Secret was deleted. The key still works, but the operator does not know its value. Create a new ApiKey for a new value.',
      ),
      SecretUnreadable: unknown(
        'The operator cannot read the Secret. The message names the cause; usually a Role or RoleBinding of the operator is missing in the namespace. Restore it; the operator retries by itself.',
      ),
      KeyringFull: no(
        'The keyring, or the share of the namespace, has no room for another key; the message says which. Shorten spec.models, delete ApiKeys that are not needed, or ask the administrator; the operator retries by itself.',
      ),
      QuotaExceeded: no(
        'A ResourceQuota of the namespace refuses another Secret. Raise the quota or delete Secrets; the operator retries by itself.',
      ),
      AdmissionDenied: no(
        'An admission policy refuses the Secret; the message quotes the policy. Change spec.secret or the policy; the operator retries by itself.',
      ),
      Forbidden: no(
        'The operator has no right to create Secrets in the namespace. Restore its Role and RoleBinding; the operator retries by itself.',
      ),
      WaitingForStore: no('Redis does not answer, so no key is issued. The operator continues by itself once Redis answers.'),
      Pending: no('The operator is issuing the key.'),
      NotApplicable: yes('source.type is Hash: the value exists elsewhere, and no Secret is written.'),
      Issued: yes('The Secret holds the key.'),
    },
  },
  Programmed: {
    presence: 'Always',
    meaning: 'Every gateway pod has acknowledged the newest revision of the key.',
    reasons: {
      Programmed: yes('Every gateway pod has acknowledged it.'),
      KeyringFull: no(
        'The keyring, or the share of the namespace, has no room for the newest edit: gateways keep the policy before it. An edit that restricts the key applies at once, but would be lost together with the data of Redis. Shorten the edit, delete ApiKeys that are not needed, or ask the administrator; the operator retries by itself.',
      ),
      Pending: no('Some gateway pods have not acknowledged it yet.'),
      NoGateways: no('No gateway pod is running. Start one.'),
      StoreUnreachable: unknown('Redis does not answer. The operator continues by itself once Redis answers.'),
      Unconfirmed: no(
        'Some gateway pods have not acknowledged it in time; the message names them. Check these pods and their connection to Redis.',
      ),
    },
  },
  LimitsEnforceable: {
    presence: 'Always',
    meaning: 'The gateways can hold every limit and budget of the key.',
    reasons: {
      GatewayTooOld: no(
        'A gateway pod runs a version that cannot enforce limits: it refuses the key with 503. Update the gateways; the condition changes a minute after the last old pod.',
      ),
      SpendHeldBack: no(
        'Redis counts more spend for a budget than calls can have caused, so a program that can write to Redis has forged it; the message names the budget. The operator does not make the count durable, and gateways refuse the key. Find that program. Then give the budget another name, which starts it at zero.',
      ),
      SpendUncertain: no(
        'Redis had lost spend of the key; the message names the period. The operator restored the spend from the last checkpoint, at most about ten seconds old, and from the memory of the gateways. Shown for 24 hours.',
      ),
      PriceMissing: no(
        'The key has a budget in Currency that blocks or a Prepaid account, and may call models without pricing; the message names some. Requests for them are refused. Set their pricing ("0" is a price).',
      ),
      OutputUnbounded: no(
        'The key has a budget that blocks, and may call models with neither maxOutputTokens nor contextTokens; the message names some. Requests that name no max_tokens may overspend the budget.',
      ),
      Enforceable: yes('Every gateway enforces all limits and budgets, or the key has none.'),
    },
  },
  Suspended: {
    presence: 'WhenTrue',
    meaning: 'Gateways refuse the key while spec.state is Suspended.',
    reasons: { Suspended: yes('spec.state is Suspended.') },
  },
  Rotating: {
    presence: 'WhenTrue',
    meaning: 'A former value of the key still works beside the present one.',
    reasons: {
      OverlapActive: yes('source.hash.sha256 was changed, and rotation.overlapSeconds are not over; the message says when.'),
    },
  },
  ValueNamedElsewhere: {
    presence: 'WhenTrue',
    meaning: 'An ApiKey in another namespace names the SHA-256 of the key.',
    reasons: {
      NamedElsewhere: yes(
        'Somebody who has read the SHA-256 may try to use the key as their own. Without the value they cannot; if you do not know the other ApiKey, make another value.',
      ),
    },
  },
  BudgetExhausted: {
    presence: 'WhenTrue',
    meaning: 'A budget that blocks is used up.',
    reasons: {
      BudgetExhausted: yes(
        'Requests answer 402 until the window of the budget ends or its amount is raised; the message names the budgets.',
      ),
    },
  },
  Expired: {
    presence: 'WhenTrue',
    meaning: 'Gateways refuse the key because it has expired.',
    reasons: { Expired: yes('status.expirationTime has passed.') },
  },
  Stalled: {
    presence: 'WhenTrue',
    meaning: 'The operator cannot continue by itself. A person must fix the cause.',
    reasons: {
      KeyLost: yes('See the condition Ready.'),
      SecretConflict: yes('See the condition SecretIssued.'),
      DuplicateKey: yes('See the condition Accepted.'),
      SourceInvalid: yes('See the condition Accepted.'),
      ProofRequired: yes('See the condition Accepted.'),
      ValueUsed: yes('See the condition Accepted.'),
    },
  },
} as const satisfies ConditionTable

/** Conditions of a ServedModel. */
export const SERVED_MODEL_CONDITIONS = {
  Ready: {
    presence: 'Always',
    meaning: 'The model is accepted, has an endpoint, and every gateway knows it.',
    reasons: {
      NotAccepted: no('See the condition Accepted.'),
      NoEndpoints: no('See the condition BackendsHealthy.'),
      NotProgrammed: no('Not every gateway pod has acknowledged the newest revision of the model yet.'),
      Ready: yes('Clients can call the model.'),
    },
  },
  Accepted: {
    presence: 'Always',
    meaning: 'The operator applies the manifest.',
    reasons: {
      NamespaceLimitReached: no(LIMIT_REACHED('ServedModels')),
      PublishingNotAllowed: no(
        'allowedNamespaces opens the model to other namespaces, and the administrator has not listed this namespace as one that may do so. Only keys of this namespace can use the model. Write from: Same, or ask the administrator.',
      ),
      NameConflict: no(
        'An older ServedModel has the served name or an alias; the message names it. Only that name is refused. Choose another name.',
      ),
      HeaderRefused: no(
        'forwardHeaders or headers of a backend names a header that is never sent, or authSecretRef.header does; the message names it. The other headers are sent. Take the name out of the list, or write another header.',
      ),
      ServiceNotFound: no(
        'The Service of a backend, or its port, does not exist in this namespace, or the Service is of type ExternalName. Create it or correct the backend.',
      ),
      AddressRefused: no(
        'The url of a backend is a loopback, link-local or metadata address, or leads into the cluster from a namespace that the administrator has not listed for that. Use the address of a model server, or a Service of this namespace.',
      ),
      SecretUnreadable: unknown(
        'The operator cannot read the Secret of an authSecretRef. The message names the cause; usually a Role or RoleBinding of the operator is missing in the namespace. Restore it; the operator retries by itself.',
      ),
      SecretNotFound: no(
        'The Secret of an authSecretRef, or its data key, does not exist in this namespace, or the Secret lacks the label headgate.dev/upstream-auth: "true". Create it or add the label.',
      ),
      CredentialHostNotAllowed: no(
        'The Secret of an authSecretRef does not list the host of the backend in its annotation headgate.dev/upstream-hosts. Add the host to the annotation, or correct the backend.',
      ),
      CredentialsFull: no(
        'The Secrets that the gateways mount have no room for another model or backend credential. Delete ServedModels or share one Secret; the operator retries by itself.',
      ),
      Accepted: yes('The operator carries it out.'),
    },
  },
  BackendsHealthy: {
    presence: 'Always',
    meaning: 'The gateways can reach all backends.',
    reasons: {
      Healthy: yes('Gateways can use all backends.'),
      NotAccepted: no('The manifest keeps gateways from every backend. See the condition Accepted.'),
      NoEndpoints: no('No backend has a ready endpoint. Start a pod that the Service selects.'),
      Unreachable: no('No gateway can reach any backend. Check the servers and the network policies.'),
      Degraded: no('Gateways cannot use some backends; the others serve.'),
    },
  },
  Priced: {
    presence: 'Always',
    meaning: 'The model has a price.',
    reasons: {
      PriceMissing: no(
        'pricing is absent. Keys with a Currency budget that blocks and keys of Prepaid accounts cannot call the model; all others can.',
      ),
      Priced: yes('pricing is set.'),
    },
  },
  Stalled: {
    presence: 'WhenTrue',
    meaning: 'The model is not served, and only an edit of the ServedModel can change that.',
    reasons: {
      AddressRefused: yes('As for Accepted.'),
      NameConflict: yes('As for Accepted: another ServedModel has the served name.'),
    },
  },
} as const satisfies ConditionTable

/** A condition of an ApiKey before its status and times are filled in. */
export type ApiKeyCondition = ConditionOf<typeof API_KEY_CONDITIONS>
/** A condition of a ServedModel before its status and times are filled in. */
export type ServedModelCondition = ConditionOf<typeof SERVED_MODEL_CONDITIONS>
