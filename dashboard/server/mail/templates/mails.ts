/** All mails by name. The outbox stores name and parameters, and renders the mail when the mail is sent. */
import { knownAddressMail, newAddressMail, resetMail, verifyMail, type LinkParameters } from './link-mails.ts'
import { keyCreatedMail, keyExpiresMail, keyRevokedMail, keysMail, type KeyParameters, type KeysParameters } from './key-mails.ts'
import type { Mail, MailSite } from './mail.ts'
import {
  balanceEmptyMail,
  balanceLowMail,
  creditAddedMail,
  creditReversedMail,
  creditsMail,
  type CreditParameters,
  type CreditsParameters,
  type DailyParameters,
  type LowBalanceParameters,
} from './money-mails.ts'
import {
  accountDeletedMail,
  addressChangedMail,
  newBackupCodesMail,
  passwordChangedMail,
  providerLinkedMail,
  providerUnlinkedMail,
  twoFactorOffMail,
  twoFactorOnMail,
  wrongPasswordsMail,
  type AddressParameters,
  type ProviderParameters,
  type TimeParameters,
  type WrongPasswordsParameters,
} from './notice-mails.ts'

/** Parameters of each mail: values that JSON keeps as they are. */
export interface MailParameters {
  verify: LinkParameters
  'known-address': Readonly<Record<string, never>>
  reset: LinkParameters
  'new-address': LinkParameters
  'address-changed': AddressParameters
  'password-changed': TimeParameters
  'two-factor-on': TimeParameters
  'two-factor-off': TimeParameters
  'new-backup-codes': TimeParameters
  'provider-linked': ProviderParameters
  'provider-unlinked': ProviderParameters
  'wrong-passwords': WrongPasswordsParameters
  'account-deleted': TimeParameters
  'credit-added': CreditParameters
  'credit-reversed': CreditParameters
  credits: CreditsParameters
  'balance-low': LowBalanceParameters
  'balance-empty': DailyParameters
  'key-created': KeyParameters
  'key-expires': KeyParameters
  'key-revoked': KeyParameters
  keys: KeysParameters
}
export type MailName = keyof MailParameters

/** A stored name may be an older one: an outbox outlives an update. Rename nothing here while mails of that name may wait. */
export const MAILS: { readonly [Name in MailName]: (site: MailSite, parameters: MailParameters[Name]) => Mail } = {
  verify: verifyMail,
  'known-address': knownAddressMail,
  reset: resetMail,
  'new-address': newAddressMail,
  'address-changed': addressChangedMail,
  'password-changed': passwordChangedMail,
  'two-factor-on': twoFactorOnMail,
  'two-factor-off': twoFactorOffMail,
  'new-backup-codes': newBackupCodesMail,
  'provider-linked': providerLinkedMail,
  'provider-unlinked': providerUnlinkedMail,
  'wrong-passwords': wrongPasswordsMail,
  'account-deleted': accountDeletedMail,
  'credit-added': creditAddedMail,
  'credit-reversed': creditReversedMail,
  credits: creditsMail,
  'balance-low': balanceLowMail,
  'balance-empty': balanceEmptyMail,
  'key-created': keyCreatedMail,
  'key-expires': keyExpiresMail,
  'key-revoked': keyRevokedMail,
  keys: keysMail,
}

export function renderMail<Name extends MailName>(site: MailSite, name: Name, parameters: MailParameters[Name]): Mail {
  return MAILS[name](site, parameters)
}
