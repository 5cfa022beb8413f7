/** Mails that report a change of an account to its owner. Each says what holds now, and what to do if somebody else made the change. */
import { utcTime } from '../../pages/utc-time.ts'
import { compose, type Mail, type MailSite } from './mail.ts'

export interface TimeParameters {
  /** RFC 3339. */
  readonly at: string
}

export interface ProviderParameters extends TimeParameters {
  /** Name for people: `GitHub`. */
  readonly provider: string
}

export interface AddressParameters extends TimeParameters {
  /** The mail shows a part of this address. */
  readonly newAddress: string
}

export interface WrongPasswordsParameters {
  readonly tries: number
  readonly minutes: number
}

const SET_PASSWORD = { label: 'Set a new password', path: '/reset' } as const
const SETTINGS = { label: 'Settings', path: '/settings' } as const
const NOT_YOU = 'If it was not you, set a new password at once. It ends all sessions.'
const ASK_ADMINISTRATOR = 'If it was not you, tell your administrator at once.'

const time = (at: string): string => utcTime(new Date(at))

export function passwordChangedMail(site: MailSite, { at }: TimeParameters): Mail {
  return compose(site, {
    subject: `Your password for ${site.name} was changed`,
    before: [`The password was changed on ${time(at)}. All other sessions have ended. Your API keys go on working.`, NOT_YOU],
    link: SET_PASSWORD,
  })
}

export function twoFactorOnMail(site: MailSite, { at }: TimeParameters): Mail {
  return compose(site, {
    subject: `Two-factor sign-in is on for ${site.name}`,
    before: [
      `Two-factor sign-in was turned on (${time(at)}). From now on each sign-in asks for a code of your authenticator app.`,
      'Keep your backup codes where you find them without your phone.',
      `${NOT_YOU} Then ask your administrator to turn two-factor sign-in off.`,
    ],
    link: SET_PASSWORD,
  })
}

export function twoFactorOffMail(site: MailSite, { at }: TimeParameters): Mail {
  return compose(site, {
    subject: `Two-factor sign-in is off for ${site.name}`,
    before: [`Two-factor sign-in was turned off (${time(at)}). A sign-in no longer asks for a code.`, NOT_YOU],
    link: SET_PASSWORD,
  })
}

export function newBackupCodesMail(site: MailSite, { at }: TimeParameters): Mail {
  return compose(site, {
    subject: `New backup codes for ${site.name}`,
    before: [`New backup codes were made on ${time(at)}. The former codes no longer work.`, NOT_YOU],
    link: SET_PASSWORD,
  })
}

export function providerLinkedMail(site: MailSite, { at, provider }: ProviderParameters): Mail {
  return compose(site, {
    subject: `${provider} was linked to your account at ${site.name}`,
    before: [
      `${provider} was linked on ${time(at)}. You can now sign in with ${provider}.`,
      `If it was not you, unlink ${provider} in Settings at once, then change your password there.`,
    ],
    link: SETTINGS,
  })
}

export function providerUnlinkedMail(site: MailSite, { at, provider }: ProviderParameters): Mail {
  return compose(site, {
    subject: `${provider} was unlinked from your account at ${site.name}`,
    before: [`${provider} was unlinked on ${time(at)}. You can no longer sign in with ${provider}.`, NOT_YOU],
    link: SET_PASSWORD,
  })
}

/** To the old address, once the new one is confirmed. The old address can no longer reset the password, so the mail has no link. */
export function addressChangedMail(site: MailSite, { at, newAddress }: AddressParameters): Mail {
  return compose(site, {
    subject: `Your email for ${site.name} was changed`,
    before: [
      `On ${time(at)} the email of your account was changed to ${masked(newAddress)}. This address no longer signs in.`,
      ASK_ADMINISTRATOR,
    ],
  })
}

export function wrongPasswordsMail(site: MailSite, { tries, minutes }: WrongPasswordsParameters): Mail {
  return compose(site, {
    subject: `Many wrong passwords for your account at ${site.name}`,
    before: [
      `A wrong password was typed ${tries} times within ${minutes} minutes. None of these tries got in. Further tries have to wait.`,
      'If it was you and you have forgotten the password, set a new one.',
    ],
    link: SET_PASSWORD,
    after: [
      'If it was not you, there is nothing to do as long as no other site knows this password. Two-factor sign-in protects you further.',
    ],
  })
}

export function accountDeletedMail(site: MailSite, { at }: TimeParameters): Mail {
  return compose(site, {
    subject: `Your account at ${site.name} was deleted`,
    before: [
      `Your account was deleted on ${time(at)}. You can no longer sign in, and its API keys no longer work.`,
      'Payments and usage stay in the records of your administrator.',
      ASK_ADMINISTRATOR,
    ],
  })
}

/** `maya@fernwood.example` → `m…@fernwood.example`: the owner recognises the address, and a reader of the mail does not learn it. */
function masked(address: string): string {
  const at = address.lastIndexOf('@')
  return `${address.charAt(0)}…${at > 0 ? address.slice(at) : ''}`
}
