/** Mails that somebody asked for by typing an address. Their links are the only proof that an address belongs to a person. */
import { compose, type Mail, type MailSite } from './mail.ts'

export interface LinkParameters {
  /** Path of the link with its token: `/verify?token=…`. */
  readonly path: string
}

/** After a sign-up with a new address. */
export function verifyMail(site: MailSite, { path }: LinkParameters): Mail {
  return compose(site, {
    subject: `Verify your email for ${site.name}`,
    before: [`You signed up for ${site.name}. Verify your email to go on. The link works for 24 hours.`],
    link: { label: 'Verify email', path },
    after: [
      'Open the link in the browser in which you signed up. Another browser asks for a password too.',
      'If you did not sign up, ignore this mail. Without the link, nobody can use your address.',
    ],
  })
}

/** After a sign-up with an address that has an account. The page shows the same as for a new address. */
export function knownAddressMail(site: MailSite): Mail {
  return compose(site, {
    subject: `You already have an account at ${site.name}`,
    before: [
      `Somebody signed up for ${site.name} with this address, most likely you. The address already has an account, so nothing was changed.`,
      'Sign in as before. To set a password, choose "Forgot your password?" on the same page.',
    ],
    link: { label: 'Sign in', path: '/sign-in' },
    after: ['If it was not you, ignore this mail.'],
  })
}

export function resetMail(site: MailSite, { path }: LinkParameters): Mail {
  return compose(site, {
    subject: `Set a new password for ${site.name}`,
    before: [`Somebody asked to reset the password of your account at ${site.name}. The link works once, for 30 minutes.`],
    link: { label: 'Set a new password', path },
    after: ['If you did not ask for the link, ignore this mail. Your password stays as it is.'],
  })
}

/** To the new address. The link works only while the same person is signed in, so a mistyped address gives nothing away. */
export function newAddressMail(site: MailSite, { path }: LinkParameters): Mail {
  return compose(site, {
    subject: `Verify your new email for ${site.name}`,
    before: [
      `Somebody asked to change the email of an account at ${site.name} to this address. The link works for 24 hours.`,
      'Open the link in the browser in which you are signed in.',
    ],
    link: { label: 'Verify email', path },
    after: ['If you did not ask for the change, ignore this mail. The account keeps its email.'],
  })
}
